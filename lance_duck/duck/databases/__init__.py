"""Databases of Lance tables in one instance of DuckDB: the connected folder, and attached ones.

You hold: a folder, names of tables, a binder. You get: a database of DuckDB's in memory with a view for each table, up
to date as tables come and go; so names are found, listed and described as those of DuckDB's own databases.
Never here: the meaning of a name on a connection, which `names` looks up; and the text of statements.
"""
