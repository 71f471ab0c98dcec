"""Zone maps and Bloom filters: summaries of stretches of a fragment's rows (zones).

The input is batches of values and rows in table order, or open segments. The output is the file of a segment, or, from
an open one, the zones in which some rows may satisfy a query, or all rows do. Scans compare the values themselves.
"""
