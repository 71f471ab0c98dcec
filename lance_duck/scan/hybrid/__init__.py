"""Hybrid searches: a vector search and a full-text search whose candidates are ranked together.

You hold: a scan with `nearest` and `full_text_query`. You get: rows with `_distance`, `_score` and `_hybrid_score`,
best first. Never here: the vector search (`scan.nearest`) and the full-text search (`scan.text`).
"""
