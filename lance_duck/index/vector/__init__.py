"""Vector segments: IVF lists and HNSW graphs in Lance's files, searched by faiss.

You hold: vectors with their rows and a specification, or segments.
You get: the files of a segment, built from rows (`build`) or from other segments (`merge`), or, from an open segment,
the positions and distances of the nearest vectors (`search`). `metric.distances` is the reference implementation.
Never here: filters and row addresses (`scan/nearest`).

Only this package uses faiss, and passes only arrays to it. The single kind VECTOR covers all vector index types.
"""
