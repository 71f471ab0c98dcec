"""The Lance databases of one DuckDB instance: the connected folder and attached folders.

You hold: a folder, names of tables, a binder. You get: an in-memory DuckDB database with a view for each table. The
views are updated when tables are added or removed. DuckDB then finds, lists and describes the tables as in any native
database. Never here: name resolution on a connection (see `names`), and the text of statements.
"""
