"""Kernels of JSONB: from its bytes to text, and from text.

You hold: bytes of JSONB, or texts with their offsets. You get: the other form in arrays of the caller, or the place
and the kind of the first error.
Never here: Arrow, and exceptions: a kernel returns a status.
"""
