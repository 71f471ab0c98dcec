"""Blobs of a data file: their locations, parsed from a column's descriptions, and file objects that read them.

You hold: descriptions from a column reader. You get: the location of each blob (`places`), and binary files that read
on demand (`file`).
Never here: writing of blobs (`file/write/blobs`), and the choice of rows (`scan/blobs`).
"""
