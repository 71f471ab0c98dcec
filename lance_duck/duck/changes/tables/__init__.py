"""Statements about whole tables: CREATE, DROP, ALTER and COPY … TO.

You hold: a statement's clauses and a session. You get: a table that was made, changed or dropped by the verbs of
`LanceDataset`. Never here: rows, which `changes.rows` changes.
"""
