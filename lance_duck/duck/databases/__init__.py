"""Databases of Lance tables in one instance of DuckDB: the connected folder, and attached ones.

You hold: a folder, names of tables, a binder. You get: an in-memory DuckDB database with a view for each table, which
is updated as tables come and go. DuckDB then finds, lists and describes the tables as in any native database. Never
here: the meaning of a name on a connection, which `names` looks up; and the text of statements.
"""
