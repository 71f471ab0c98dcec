"""Tables in Spark SQL: views that are refreshed after writes, table functions, and table metadata.

You hold: a session, and the name and location of a table. You get: temporary views, registered table functions, and
Arrow tables of versions, fragments and indexes.
Never here: changes of a table (`spark/verbs`).
"""
