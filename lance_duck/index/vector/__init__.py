"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss.

You hold: vectors with their rows, and a specification; or segments. You get: the files of a segment, of rows (`build`)
or of other segments (`merge`), and of an open one the positions and distances of the nearest vectors (`search`).
`metric.distances` is the plain reference.
Never here: filters and addresses of rows, which `scan/nearest` knows. faiss is used here alone, and gets arrays only.
One kind, VECTOR, stands for all types of vector index.
"""
