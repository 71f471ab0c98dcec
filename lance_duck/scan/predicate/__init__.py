"""Predicates as an immutable tree, whichever language they were written in, and their values on Arrow columns.

`evaluate` is the plain reference of all that decides which rows satisfy a predicate; `masks` and `kernels` are fast.
"""
