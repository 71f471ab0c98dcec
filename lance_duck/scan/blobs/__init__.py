"""Blobs of selected rows: as files that are read lazily, as bytes, or in the form in which they are rewritten.

You hold: a table, a blob column, and rows by position, address or row id. You get: binary files, bytes of ranges, and
for rewritten rows the bytes or the reference to an external file (`copies`).
Never here: the layout of bytes in data files (`file/blobs`).
"""
