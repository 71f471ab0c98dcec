"""Searches of open segments: inverted lists, which are loaded on demand, graphs, and binary vectors.

You hold: an open segment, queries, k, and a mask of allowed positions. You get: positions and distances, see
`contract`.
Never here: rows of a table, and reranking with the table's vectors.
"""
