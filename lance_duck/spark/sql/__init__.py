"""Tables in Spark SQL: views that follow writes, table functions, and facts of a table as frames.

You hold: a session, and the name and location of a table. You get: temporary views, registered table functions, and
Arrow tables of versions, fragments and indexes.
Never here: changes of a table (`spark/verbs`).
"""
