"""Kernels for fixed-width values: bit packing, run lengths, byte stream split, packed structs.

You hold: packed bytes, or values. You get: the decoded or encoded form in the caller's arrays.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
