"""Compiled loops, each beside its plain numpy reference in the tests.

You hold: buffers of a caller, as numpy arrays. You get: results in arrays of the caller, and a status.
`jit.kernel` compiles: without the GIL, cached on disk, without reference counts. A kernel checks every offset and
length before it touches a buffer and reports a status (`status.py`); it allocates nothing and raises nothing.
Never here: Arrow, files, descriptions of encodings.
"""
