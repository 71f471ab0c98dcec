"""Numba kernels, each beside its plain numpy reference."""
