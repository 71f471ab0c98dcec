"""Kernels that convert JSONB to JSON text and back.

You hold: JSONB bytes, or strings with their offsets. You get: the converted values in the caller's arrays, or the
location and kind of the first error.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
