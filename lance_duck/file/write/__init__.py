"""Data files out: columns, container, blobs beside them; the mirror of reading.

You hold: a schema and Arrow batches. You get: a data file under its name, and what it consists of. Never here:
fragments.
"""
