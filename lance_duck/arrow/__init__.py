"""Helpers for Arrow data: kinds of types, joined arrays, and memory of the pool.

You hold: Arrow types and arrays. You get: what kind a type is, one array of several, and memory for an array that is
filled later.
Never here: Lance, and imports of other rooms.
"""
