"""Kernels of values of any length: FSST, dictionaries, views, gathering.

You hold: bytes with their offsets. You get: the same, decoded, encoded or gathered, in arrays of the caller.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
