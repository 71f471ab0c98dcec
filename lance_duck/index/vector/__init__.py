"""Vector segments: IVF lists and HNSW graphs in Lance's own files, searched by faiss."""
