"""Statements about whole tables: CREATE, DROP, ALTER, COMMENT, DESCRIBE, and COPY in both directions.

You hold: a statement's clauses and a session. You get: a created, filled, described, changed or dropped table.
`LanceDataset` methods make the changes. Never here: INSERT, UPDATE and DELETE (see `changes.rows`).
"""
