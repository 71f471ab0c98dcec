"""Scans whose rows come with scores: what results look like, how they are read; new filters, asked of the best rows.

You hold: rows by address in the order of a result, and for each its scores by name. You get: tables and batches; or
those rows that pass a filter, asked of the best alone.
Never here: which rows a search finds.
"""
