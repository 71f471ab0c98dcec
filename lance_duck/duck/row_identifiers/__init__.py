"""`rowid`, `_rowid` and `_rowaddr`, which every table has and no star shows, in plain SQL.

    SELECT rowid, * FROM t WHERE _rowid IN (3, 7)

You hold: a statement as it was given, or the SELECT that a change is made of. You get: one in which the tables of which
these are asked have them as columns, and the stars leave them out. The way: `references` (tables and stars, by tokens;
pure) → `rewrite` (statements that read, and SELECTs that changes are made of) → `tables/row_identifier_columns`.
Never here: where a row lies, and what its id is.
"""
