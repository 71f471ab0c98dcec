"""Arrow alone: kinds of types, arrays joined, and memory of its pool.

You hold: Arrow types and arrays. You get: what kind a type is, one array of several, and memory for an array that is
filled later.
Never here: Lance, and imports of other rooms.
"""
