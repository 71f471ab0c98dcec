"""Kernels of values of one width: bit packing, runs, byte stream split, packed structs."""
