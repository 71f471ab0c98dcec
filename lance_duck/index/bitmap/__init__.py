"""Bitmap and label list indexes, which store the set of rows for each distinct value or list item.

You hold: batches of values and rows, or open segments.
You get: the file of a segment, or, from an open segment, the rows of a query.
Never here: segment coverage (`index/reach`, `index/search`).
"""
