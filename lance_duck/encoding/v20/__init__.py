"""Array encodings of 2.0 files: a page is a tree of arrays, each with its own buffers.

You hold: the description of a page and its buffers. You get from `registry`: a tree that reads runs of rows by
requests, and gives blocks and nulls.
Never here: which page has a row, and Arrow types, which `file/v20` knows.
"""
