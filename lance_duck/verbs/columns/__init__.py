"""Adding, altering, dropping and merging columns: one new file for each fragment that gets values.

You hold: a version, and changes to its columns. You get: an operation and new data files. `new_columns` provides values
(SQL, a function, a stream, a join, nulls), `schema_change` builds the new schema (pure), and `parts` lets many
processes write values.
Never here: new rows, and changed rows (`verbs/rows`).
"""
