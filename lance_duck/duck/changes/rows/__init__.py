"""Statements that change rows: INSERT (ON CONFLICT too), UPDATE, DELETE and TRUNCATE.

You hold: a statement's clauses and a session. You get: `RowEdits`, and the rows that RETURNING asks for. Never here:
how edits become a version, which `session` has `verbs.rows.edits` do.
"""
