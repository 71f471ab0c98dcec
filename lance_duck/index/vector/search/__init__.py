"""Search of open segments: lists that are filled when they are probed, graphs, and vectors of bits.

You hold: an open segment, queries, k, and which positions may be found. You get: positions and distances, as `contract`
says.
Never here: rows of a table, and ranking by the vectors of the table.
"""
