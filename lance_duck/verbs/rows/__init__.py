"""Deletes and updates of rows.

Rows are found by condition or address. Deleted rows are listed in deletion files. An update lists the old rows there
and writes new rows.

You hold: a version, a condition, new values. You get: an operation and the files that it refers to, not yet committed.
Never here: conflicts, which `commit` resolves. `find` streams rows in the form that writers accept, `rows_moved`
changes their fragments, `keys` matches table rows with source keys, and `draft` deletes the files of a failed change.
"""
