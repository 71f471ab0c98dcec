"""Validation: finds the problems of a version, and the rows and index segments to remove in a repair.

You hold: a snapshot. You get: a list of problems; for each file, whether it matches its checksums; the rows, index
segments and other parts that are lost. Never here: changes of readable data.
"""
