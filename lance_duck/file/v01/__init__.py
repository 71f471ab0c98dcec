"""Columns of 0.1 files: batches of rows that all columns share, and no nulls except for empty texts.

You hold: the bytes of a file of version 0.1 and a field. You get: a `LegacyFile`, and a tree of nodes that reads rows
by requests, as Arrow arrays of the type asked for; structs, missing fields and the column are those of `file/v20`. Or
you hold batches and a sink, and get a new file; values that would be read as others are refused.
Never here: later versions, the dictionaries in manifests of tables (a file has its own copy), statistics of batches.
"""
