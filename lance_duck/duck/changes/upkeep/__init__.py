"""Statements of upkeep: OPTIMIZE, VACUUM, CHECKPOINT of a table, automatic cleanup, and the procedures for the same.

You hold: a statement's clauses and a session. You get: a table that was compacted or cleaned up by the verbs of
`LanceDataset`, and figures of that. Never here: which files go or are joined, which `maintenance` decides.
"""
