"""HNSW graphs: building, searching, removal of vectors, and storage as rows of Lance's files.

You hold: vectors, or the rows of a stored graph. You get: arrays of neighbours for each level, in the form of faiss; a
stored graph is checked before faiss gets it.
Never here: partitions, codes of vectors, and files.
"""
