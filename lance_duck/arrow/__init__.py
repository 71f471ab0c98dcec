"""Helpers for Arrow data and numpy arrays: kinds of types, joined arrays, sets of numbers, and memory of the pool.

You hold: Arrow types and arrays. You get: what kind a type is, one array of several, the distinct numbers of arrays,
and memory for an array that is filled later.
Never here: Lance, and imports of other rooms.
"""
