"""Helpers for Arrow data and numpy arrays: type predicates, concatenation, distinct numbers, pool memory.

You hold: Arrow types and arrays. You get: the kind of a type, concatenated arrays, distinct numbers of arrays, and
memory for an array that is filled later.
Never here: Lance, and imports of other packages.
"""
