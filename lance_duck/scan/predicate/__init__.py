"""Predicates as an immutable tree, whichever language they were written in, and their values on Arrow columns.

You hold: conditions on columns, in any language. You get: one tree, and for Arrow columns a mask of the rows that
satisfy it. Never here: indexes and files.
`evaluate` is the reference implementation. `masks` and `kernels` are its fast path.
"""
