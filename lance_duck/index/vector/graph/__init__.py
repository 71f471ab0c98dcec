"""HNSW graphs: built, walked over, cut, and stored as rows of Lance's files.

You hold: vectors, or the rows of a stored graph. You get: arrays of neighbours for each level, that faiss takes; a
stored graph is checked before faiss sees it.
Never here: partitions, codes of vectors, and files.
"""
