"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss.

The input is vectors with their rows and a specification, or segments. The output is the files of a segment, built from
rows (`build`) or from other segments (`merge`), or, from an open segment, the positions and distances of the nearest
vectors (`search`). `metric.distances` is the reference implementation. Filters and row addresses belong elsewhere
(`scan/nearest`). No other package uses faiss, which receives only arrays. One kind, VECTOR, covers all vector index
types.
"""
