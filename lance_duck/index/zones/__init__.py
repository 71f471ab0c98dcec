"""Zone maps and Bloom filters: a summary of each stretch of rows, a zone, of a fragment.

You hold: batches of values and rows in the order of the table, or open segments. You get: the file of a segment; from
an open segment, the zones in which some rows may satisfy a query, or all rows surely do.
Never here: comparisons of the values themselves, which a scan does.
"""
