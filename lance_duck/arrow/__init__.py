"""Helpers for Arrow data and numpy arrays: type predicates, concatenation, distinct numbers, pool memory.

You hold: Arrow types and arrays. You get: what kind a type is, one array of several, the distinct numbers of arrays,
and memory for an array that is filled later.
Never here: Lance, and imports of other rooms.
"""
