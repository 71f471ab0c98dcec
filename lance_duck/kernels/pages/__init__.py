"""Kernels of page layouts: chunk headers, levels, full-zip entries, single values, LZ4 blocks.

You hold: bytes of pages, or levels and values. You get: the other form, in arrays of the caller.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
