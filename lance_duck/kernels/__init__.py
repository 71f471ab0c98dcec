"""Compiled loops. The tests compare each of them with a plain numpy reference.

You hold: the caller's buffers, as numpy arrays. You get: results in the caller's arrays, and a status.
`jit.kernel` compiles a kernel without the GIL and without reference counts, and caches it on disk. A kernel checks
every offset and length before it reads a buffer, and returns a status (`status.py`). It never allocates or raises.
Never here: Arrow, files, descriptions of encodings.
"""
