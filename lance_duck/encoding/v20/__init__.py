"""Array encodings of 2.0 files: a page is a tree of arrays, each with its own buffers.

You hold: the description of a page and its buffers. You get from `registry`: a tree of readers that requests bytes for
runs of rows, and returns blocks and nulls.
Never here: the mapping of rows to pages, and Arrow types. Both are in `file/v20`.
"""
