"""DuckDB as the evaluator of SQL expressions on Arrow columns, in a private database that sees nothing else.

You hold: the text of an expression, columns, parameters. You get: its type, its values, and errors in words about the
text as the user wrote it.
Never here: tables, connections of users, and the parsing of simple conditions (`scan/sql`).
"""
