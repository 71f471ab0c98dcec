"""Searches for vectors and for words in one: the candidates of both, in one order.

You hold: a scan with `nearest` and `full_text_query`. You get: rows with `_distance`, `_score` and `_hybrid_score`,
best first. Never here: how either search finds its rows (`scan.nearest`, `scan.text`).
"""
