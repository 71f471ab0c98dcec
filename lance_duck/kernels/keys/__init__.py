"""Kernels for keys: XXH64, Bloom filters, sets of numbers, sorting.

You hold: numbers, or bytes with their offsets. You get: hashes, masks and sort orders in the caller's arrays.
Never here: Arrow, and the meaning of keys.
"""
