"""Searches of open segments: lists that are filled when they are probed, graphs, and vectors of bits.

You hold: an open segment, queries, k, and a mask of allowed positions. You get: positions and distances, see
`contract`.
Never here: rows of a table, and re-ranking by the vectors of the table.
"""
