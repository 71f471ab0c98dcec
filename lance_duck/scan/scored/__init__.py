"""Scans whose rows come with scores: what their results look like, and how these are read.

You hold: rows by address in the order of a result, and for each its scores by name. You get: tables and batches.
Never here: which rows a search finds.
"""
