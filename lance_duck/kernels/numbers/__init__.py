"""Kernels of values of one width: bit packing, runs, byte stream split, packed structs.

You hold: packed bytes, or values. You get: the other form, in arrays of the caller.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
