"""Bitmap and label list indexes: for each distinct value, or item of a list, the set of its rows.

The input is batches of values and rows, or open segments. The output is the file of a segment, or, from an open one,
the rows of a query. Fragment coverage belongs elsewhere (`index/reach`, `index/search`).
"""
