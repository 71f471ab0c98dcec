"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss.

You hold: vectors with their rows, and a specification; or segments. You get: the files of a segment, built from rows
(`build`) or from other segments (`merge`); from an open segment, the positions and distances of the nearest vectors
(`search`). `metric.distances` is the plain reference.
Never here: filters and addresses of rows (`scan/nearest`). No other package uses faiss, which gets arrays only.
One kind, VECTOR, stands for all types of vector index.
"""
