"""Columns of 0.1 files: all columns have the same batches, and only empty values represent nulls.

You hold: the bytes of a file of version 0.1 and a field. You get: a `LegacyFile`, and a tree of nodes that requests
bytes and returns rows as Arrow arrays of the requested type. Structs, missing fields and whole columns use the classes
of `file/v20`. To write, you hold batches and a sink, and get a new file. Values that would read back differently are
rejected.
Never here: later versions, the dictionaries that manifests store (each file has a copy), batch statistics.
"""
