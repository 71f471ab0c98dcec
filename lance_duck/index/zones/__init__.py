"""Zone maps and Bloom filters: summaries of row ranges of a fragment (zones).

You hold: batches of values and rows in table order, or open segments.
You get: the file of a segment, or, from an open segment, the zones in which some rows may satisfy a query, or all do.
Never here: comparisons of the values themselves. Scans do that.
"""
