"""Blobs of a data file: where their bytes lie, from the descriptions of a column, and files that read them.

You hold: descriptions, as a column reader gives them. You get: places (`places`), and binary files that read their
bytes on demand (`file`).
Never here: writing of blobs (`file/write/blobs`), and the choice of rows (`scan/blobs`).
"""
