"""Statements about whole tables: CREATE, DROP, ALTER, COMMENT, DESCRIBE, and COPY in both directions.

You hold: a statement's clauses and a session. You get: the methods of `LanceDataset` create, fill, describe, change or
drop the table. Never here: INSERT, UPDATE and DELETE (see `changes.rows`).
"""
