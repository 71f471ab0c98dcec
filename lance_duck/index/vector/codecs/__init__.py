"""RaBitQ codes, and the rotations of vectors before encoding. Other codes are simpler: `layout` describes them.

You hold: columns of a segment, or vectors and their centroids. You get: rows of codes with their factors, or columns.
Never here: files and searches.
"""
