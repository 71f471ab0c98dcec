"""Rows are deleted and updated: found by a condition or by address, listed in deletion files, rewritten.

You hold: a version, a condition, new values. You get: an operation and the files it names, not yet committed. Never
here: conflicts, which `commit` decides.
`find` gives rows as they will be written, `rows_moved` what becomes of their fragments, `keys` which row of a table has
which key of a source, `draft` deletes the files of a change that failed.
"""
