"""Kernels for page layouts: chunk headers, levels, full-zip entries, single values, LZ4 blocks.

You hold: page bytes, or levels and values. You get: the decoded or encoded form in the caller's arrays.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
