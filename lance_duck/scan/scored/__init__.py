"""Scans whose rows have scores: layout and reading of results, and evaluation of new filters on the best rows only.

You hold: rows by address in the order of a result, and for each its scores by name. You get: tables and batches; or
the best rows that pass a filter.
Never here: the searches themselves.
"""
