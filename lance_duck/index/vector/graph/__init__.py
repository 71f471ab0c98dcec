"""HNSW graphs: building, searching, removal of vectors, and storage as rows of Lance's files.

You hold: vectors, or the rows of a stored graph. You get: neighbour arrays for each level, in faiss's form. Stored
graphs are validated before faiss uses them.
Never here: partitions, codes of vectors, and files.
"""
