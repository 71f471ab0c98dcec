"""Statements about databases of Lance tables: ATTACH, DETACH, schemas and secrets.

You hold: a statement's clauses and a session. You get: a new database with the tables of a folder, or the removal of a
database. Tables and folders do not change. Never here: statements about tables (see `changes.tables`).
"""
