"""The B-tree: all values in order, with the rows that they belong to.

You hold: batches of values and rows, or open segments. You get: the files of a segment (`layout` has their bytes); from
an open one the rows of a query, or an estimate of their number. A query becomes `key_ranges`, these become
ranges of entries (`search`), and these rows.
Never here: the fragments that a segment answers for, and rows that moved since it was built.
"""
