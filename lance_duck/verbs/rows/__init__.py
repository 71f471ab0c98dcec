"""Deleting and updating rows: found by a condition or by address, listed in deletion files, rewritten.

You hold: a version, a condition, new values. You get: an operation and the files it names, not yet committed. Never
here: conflicts, which `commit` decides.
`find` streams rows as they will be written, `rows_moved` changes their fragments, `keys` matches rows of a table with
keys of a source, `draft` deletes the files of a change that failed.
"""
