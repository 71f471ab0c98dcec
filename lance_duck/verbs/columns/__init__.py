"""Adding, altering, dropping and merging columns: one new file for each fragment that gets values.

You hold: a version, and changes of its columns. You get: an operation and new data files. `new_columns` has the sources
of values (SQL, a function, a stream, a join, nulls), `schema_change` makes the new schema (pure), `parts` writes values
in many processes.
Never here: new rows, and rows that change (`verbs/rows`).
"""
