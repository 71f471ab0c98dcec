"""Databases of Lance tables in one instance of DuckDB: the folder that is connected, and those that are attached.

You hold: a folder, names of tables, a binder. You get: a database of DuckDB's in memory with a view for each table, up
to date as tables come and go; so names are found, listed and described as those of DuckDB's own databases.
Never here: what a name means on a connection, which `names` asks of DuckDB; and the text of statements.
"""
