"""Writes data files: columns, container, blob sidecars. The modules mirror the reading modules.

You hold: a schema and Arrow batches. You get: a complete data file, and its size, row count and columns. Never here:
fragments.
"""
