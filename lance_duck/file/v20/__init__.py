"""Columns of 2.0 files: each field has a physical column, and the end offsets of lists are read first.

You hold: an open file of version 2.0 and a field. You get: a tree of nodes that requests bytes and returns
rows as Arrow arrays of the requested type.
Never here: the arrays inside a page (`encoding/v20`), and columns of later versions (`file/nested`, `file/leaf`).
"""
