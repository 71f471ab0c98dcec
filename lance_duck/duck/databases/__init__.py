"""The Lance databases of one DuckDB instance: the connected folder and attached folders.

You hold: a folder, names of tables, a binder. You get: an in-memory DuckDB database with a view for each table, which
is updated as tables come and go. DuckDB then finds, lists and describes the tables as in any native database. Never
here: name resolution on a connection, which `names` handles; and the text of statements.
"""
