"""Blobs of selected rows: as lazily read files, as bytes, or in the form that writers accept.

You hold: a table, a blob column, and rows by position, address or row id. You get: binary files, or byte ranges. For
rewritten rows, you get the bytes or references to external files (`copies`).
Never here: the layout of bytes in data files (`file/blobs`).
"""
