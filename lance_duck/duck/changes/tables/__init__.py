"""Statements about whole tables: CREATE, DROP, ALTER, COMMENT, DESCRIBE, and COPY in both directions.

You hold: a statement's clauses and a session. You get: a table created, filled, described, changed or dropped by the
verbs of `LanceDataset`. Never here: INSERT, UPDATE and DELETE, which are in `changes.rows`.
"""
