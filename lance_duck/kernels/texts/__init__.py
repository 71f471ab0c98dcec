"""Kernels for variable-width values: FSST, dictionaries, views, gathering.

You hold: bytes with their offsets. You get: the values decoded, encoded or gathered, in the caller's arrays.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
