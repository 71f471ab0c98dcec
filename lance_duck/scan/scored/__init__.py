"""Scans whose rows have scores: layout and reading of results; new filters, evaluated on the best rows alone.

You hold: rows by address in the order of a result, and for each its scores by name. You get: tables and batches; or
the best rows that pass a filter.
Never here: which rows a search finds.
"""
