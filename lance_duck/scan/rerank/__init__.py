"""Rerankers: the candidates of a search in a new order.

You hold: the candidates of a vector search, a full-text search or both, and a reranker. You get: the best rows with
`_relevance_score`, best first. Never here: the searches that find candidates.
"""
