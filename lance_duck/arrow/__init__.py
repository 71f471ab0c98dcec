"""Helpers for Arrow data and numpy arrays: type predicates, concatenation, distinct numbers, pool memory.

You hold: Arrow types and arrays. You get: the kind of a type, concatenated arrays, the distinct numbers in arrays, and
uninitialized arrays. Never here: Lance formats, and imports from other rooms.
"""
