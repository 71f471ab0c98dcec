"""The files of a vector segment: index.idx and auxiliary.idx, their metadata, and vectors as codes.

You hold: the files of a segment. You get: checked metadata, centroids, and the codes and rows of partitions; vectors
that wait to be written are sorted by partition (`sorted_runs`) or spilled to disk (`spill`).
Never here: distances and searches.
"""
