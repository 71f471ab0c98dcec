"""The B-tree: all values in order, each with its row.

You hold: batches of values and rows, or open segments.
You get: the files of a segment (see `layout`), or, from an open segment, a query's rows or an estimate of their number.
A query is converted to key ranges (`key_ranges`), then to ranges of entries, and finally to rows (`search`).
Never here: segment coverage, and rows that moved since the build.
"""
