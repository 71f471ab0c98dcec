"""Deleting and updating rows: found by condition or address, listed in deletion files, rewritten.

You hold: a version, a condition, new values. You get: an operation and the files that it names, not yet committed.
Never here: conflicts, which `commit` resolves. `find` streams rows in the form that is written, `rows_moved` changes
their fragments, `keys` matches table rows with source keys, and `draft` deletes the files of a failed change.
"""
