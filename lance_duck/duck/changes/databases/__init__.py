"""Statements about databases of Lance tables: ATTACH, DETACH, schemas and secrets.

You hold: a statement's clauses and a session. You get: a database with the tables of a folder is added or removed.
Tables and folders do not change. Never here: statements about tables (see `changes.tables`).
"""
