"""Scans whose rows have scores: the layout and reading of results, and filters that are evaluated on the best rows.

You hold: the addresses of rows in the order of a result, and their scores by name. You get: tables and batches, or the
best rows that pass a filter.
Never here: the searches.
"""
