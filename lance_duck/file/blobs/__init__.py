"""Blobs: where their bytes lie, from the descriptions of a column, and files that are read when they are asked."""
