"""Bitmap and label list indexes: for each distinct value, or item of a list, the set of its rows.

You hold: batches of values and rows, or open segments.
You get: the file of a segment, or, from an open segment, the rows of a query.
Never here: segment coverage (`index/reach`, `index/search`).
"""
