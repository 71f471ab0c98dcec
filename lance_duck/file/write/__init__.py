"""Writing of data files: columns, container, blob sidecars; the mirror of reading.

You hold: a schema and Arrow batches. You get: a data file under its name, and its size, rows and columns. Never here:
fragments.
"""
