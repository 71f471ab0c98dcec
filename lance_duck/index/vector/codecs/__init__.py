"""The codes of RaBitQ and the rotations before them. Other codes are plain: `layout` has them.

You hold: columns of a segment, or vectors and their centroids. You get: rows of codes with their factors, or columns.
Never here: files and searches.
"""
