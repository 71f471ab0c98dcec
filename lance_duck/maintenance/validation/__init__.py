"""Validation: what is wrong with a version of a table, and a version without it.

You hold: a snapshot. You get: problems by name; for each file, whether it is what was written; a version that goes on
without the rows and index segments that are lost.
Never here: changes of what can be read.
"""
