"""Upkeep: operations on one table, in one table of names, arguments, functions and results.

You hold: a table and the arguments of a statement or procedure. You get: the change that a verb of `LanceDataset` made,
and its result. Never here: the choice of files to compact or remove. `maintenance` decides that.
"""
