"""The B-tree: all values in order, with the rows that they belong to.

The input is batches of values and rows, or open segments. The output is the files of a segment (`layout` describes the
bytes), or, from an open segment, the rows of a query or an estimate of their number. A query becomes `key_ranges`,
these become ranges of entries (`search`), and these rows. Segment coverage and moved rows belong elsewhere.
"""
