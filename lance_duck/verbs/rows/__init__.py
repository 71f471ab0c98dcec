"""Deleting and updating rows: found by condition or address, listed in deletion files, rewritten.

Input: a version, a condition, new values. Output: an operation and the files that it names, not yet committed. Not
    here:
conflicts, which `commit` resolves.
`find` streams rows in the form that is written, `rows_moved` changes their fragments, `keys` matches table rows with
source keys, and `draft` deletes the files of a failed change.
"""
