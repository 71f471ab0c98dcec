"""MERGE INTO: `statement` reads its clauses, and chooses how to match rows.

You hold: the clauses of a MERGE and a session. You get: `RowEdits`, and the rows that RETURNING asks for. Three methods
have the same result: keys (`keys`, the way of `merge_insert`), one join by DuckDB (`join`), and the MERGE itself on a
shadow of the rows that may match. Never here: how edits become a version, which `session` has `verbs.rows.edits` do.
"""
