"""The files of a vector segment: index.idx and auxiliary.idx, their metadata, and codes of vectors.

You hold: the files of a segment. You get: checked metadata, centroids, and the codes and rows of partitions. Vectors
that wait to be written are sorted by partition (`sorted_runs`) or spilled to disk (`spill`).
Never here: distances and searches.
"""
