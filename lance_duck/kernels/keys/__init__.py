"""Kernels of values as keys: XXH64, Bloom filters, sets of numbers, and order.

You hold: numbers, or bytes with their offsets. You get: hashes, masks and orders, in arrays of the caller.
Never here: Arrow, and what a key means.
"""
