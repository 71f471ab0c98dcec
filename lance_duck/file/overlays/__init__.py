"""Columns of which some cells have newer values in other files.

You hold: a reader of a column, and layers of offsets with the files of their values. You get: a reader that gives the
newest value of each cell. Never here: bitmaps, versions, and the order of layers.
"""
