"""Validation: the problems of a version of a table, and a version without what is lost.

You hold: a snapshot. You get: problems by name; for each file, whether it is what was written; a version without the
rows and index segments that are lost. Never here: changes of what can be read.
"""
