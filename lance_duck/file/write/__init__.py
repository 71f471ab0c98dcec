"""Writes data files: columns, container, blob sidecars. It mirrors the reading modules.

You hold: a schema and Arrow batches. You get: a data file under its name, and its size, rows and columns. Never here:
fragments.
"""
