"""Compiled loops. Tests compare each loop with a plain numpy reference.

You hold: the caller's buffers, as numpy arrays. You get: results in the caller's arrays, and a status.
`jit.kernel` compiles a kernel that releases the GIL and does not count references, and caches it on disk. A kernel
checks every offset and length before it reads a buffer, and returns a status (`status.py`). It never allocates or
raises. Never here: Arrow, files, descriptions of encodings.
"""
