"""MERGE INTO: `statement` reads its clauses, and chooses how to match rows.

You hold: the clauses of a MERGE and a session. You get: `RowEdits`, and the rows for RETURNING. Three methods have the
same result: keys (`keys`, like `merge_insert`), one join by DuckDB (`join`), and the MERGE itself on a shadow of the
rows that may match. Never here: the commit of edits (`session` calls `verbs.rows.edits`).
"""
