"""Bitmap and label list indexes: the set of rows of each distinct value, or of each distinct list item.

You hold: batches of values and rows, or open segments.
You get: the file of a segment, or, from an open segment, the rows of a query.
Never here: segment coverage (`index/reach`, `index/search`).
"""
