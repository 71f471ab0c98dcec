"""Kernels of values as keys: XXH64, Bloom filters, sets of numbers, and order."""
