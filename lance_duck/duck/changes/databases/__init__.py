"""Statements about databases of Lance tables: ATTACH, DETACH, schemas in them, and secrets.

You hold: a statement's clauses and a session. You get: a database with the tables of a folder, or the removal of that
database. Tables and folders do not change. Never here: tables, which `changes.tables` makes.
"""
