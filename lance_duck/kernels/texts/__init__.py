"""Kernels for variable-width values: FSST, dictionaries, views, gathering.

You hold: bytes with their offsets. You get: decoded, encoded or gathered values in the caller's arrays.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
