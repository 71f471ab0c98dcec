"""Zone maps and Bloom filters: summaries of zones, which are row ranges of a fragment.

You hold: batches of values and rows in table order, or open segments.
You get: the file of a segment, or, from an open segment, the zones in which some or all rows may satisfy a query.
Never here: comparisons of the values themselves, which scans perform.
"""
