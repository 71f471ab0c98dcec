"""Statements that change rows: INSERT (including ON CONFLICT), UPDATE, DELETE and TRUNCATE.

You hold: a statement's clauses and a session. You get: `RowEdits`, and the rows for RETURNING. Never here: the commit
of edits (`session` calls `verbs.rows.edits`).
"""
