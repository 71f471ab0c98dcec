"""Zone maps and Bloom filters: one summary for each stretch of rows of one fragment.

You hold: batches of values and rows in the order of the table, or open segments. You get: the file of a segment, and
of an open one zones of which some rows may satisfy a query, or surely all do.
Never here: the values themselves, which a scan compares.
"""
