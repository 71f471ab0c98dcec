"""Columns of 0.1 files: all columns share their batches; empty texts are the only nulls.

You hold: the bytes of a file of version 0.1 and a field. You get: a `LegacyFile`, and a tree of nodes that reads rows
by requests, as Arrow arrays of the requested type. Structs, missing fields and whole columns use the classes of
`file/v20`. Or you hold batches and a sink, and get a new file. Values that would read back as others are rejected.
Never here: later versions, the dictionaries in manifests of tables (a file has its own copy), statistics of batches.
"""
