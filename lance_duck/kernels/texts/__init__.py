"""Kernels of values of any length: FSST, dictionaries, views, gathering."""
