"""Kernels for geometries.

You hold: the bytes of geometries in WKB. You get their bounding boxes.
Never here: types of columns, and indexes.
"""
