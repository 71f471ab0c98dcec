"""Upkeep operations on one Lance table. A list defines their names, arguments, functions and results.

You hold: a table and the arguments of a statement or procedure. You get: the change, made by a method of
`LanceDataset`, and its result. Never here: the choice of files to compact or remove (see `maintenance`).
"""
