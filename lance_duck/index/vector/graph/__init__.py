"""HNSW graphs: building and searching them, removing vectors, and storing them as rows of Lance's files.

You hold: vectors, or the rows of a stored graph. You get: neighbour arrays for each level, in faiss's format. Stored
graphs are validated before faiss uses them.
Never here: partitions, codes of vectors, and files.
"""
