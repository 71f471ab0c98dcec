"""`rowid`, `_rowid` and `_rowaddr` in plain SQL. Every table has them, and stars do not include them.

    SELECT rowid, * FROM t WHERE _rowid IN (3, 7)

You hold: the user's statement, or the SELECT of a change. You get: a statement whose tables have the requested
identifiers as columns, and whose stars exclude them. Steps: `references` (finds tables and stars in the tokens, pure) →
`rewrite` (edits queries, and SELECTs of changes) → `tables/row_identifier_columns`.
Never here: computing row addresses and row ids.
"""
