"""Predicates as immutable trees, and their evaluation on Arrow columns. All filter languages share these trees.

You hold: conditions on columns, in any filter language. You get: a tree, and a mask of the rows of Arrow columns that
satisfy it. Never here: indexes and files.
`evaluate` is the reference implementation. `masks` and `kernels` are its fast path.
"""
