"""Statements about databases of Lance tables: ATTACH, DETACH, schemas in them, and secrets.

You hold: a statement's clauses and a session. You get: a folder whose tables have names in a database of their own, or
that database gone; tables and folders themselves stay as they are. Never here: tables, which `changes.tables` makes.
"""
