"""Evaluates SQL expressions on Arrow columns with DuckDB, in a private database.

You hold: the text of an expression, columns, parameters. You get: its type, its values, and errors that refer to the
user's text.
Never here: tables, users' connections, and the parsing of simple conditions (`scan/sql`).
"""
