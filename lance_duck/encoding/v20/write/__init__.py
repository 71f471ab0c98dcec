"""Writing of arrays of 2.0 pages, as the modules of `encoding/v20` of the same names read them.

You hold: an Arrow array. You get: the description of a page, and its buffers.
Never here: page boundaries, and buffer offsets in the file.
"""
