"""The B-tree: all values in order, with the rows that they belong to.

You hold: batches of values and rows, or open segments.
You get: the files of a segment (see `layout`), or, from an open segment, a query's rows or an estimate of their number.
A query becomes `key_ranges`, these become ranges of entries (`search`), and these rows.
Never here: segment coverage, and rows that moved since the build.
"""
