"""Writes arrays of 2.0 pages. Each module mirrors the module of the same name in `encoding/v20`.

You hold: an Arrow array. You get: the description of a page, and its buffers.
Never here: page boundaries, and buffer offsets in the file.
"""
