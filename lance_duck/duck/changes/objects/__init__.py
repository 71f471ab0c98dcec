"""Statements about views, macros and types in a database of Lance tables, which its folder stores.

You hold: the clauses of a statement. You get: the object in DuckDB, and its definition in `__manifest`.
Never here: the stored form of a definition (see `namespaces`), and loading of stored objects (see `databases.objects`).
"""
