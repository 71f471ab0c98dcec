"""Product quantisation: for each sub-vector, the number of the nearest of 256 or 16 sub-vectors in a codebook.

    __pq_code    fixed_size_list<uint8, bytes of a code>; each partition transposed: byte 0 of all its rows, then byte
                 1, …; with 4 bits a byte has two sub-vectors, the lower half first
    codebook     float32 [sub-vectors][2 ** bits][dim / sub-vectors]
    metadata     {"codebook_position", "nbits", "num_sub_vectors", "dimension", "transposed"}

For l2 and cosine, the residual of a vector is encoded, the vector less its centroid; for dot, the vector itself. faiss
has the same codes and codebooks, by rows.
"""

from __future__ import annotations

from typing import Any

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.storage.files import VectorFiles


def product_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists of codes; arguments as for `flat.flat_lists`.

    It never makes faiss's tables of distances between centroids and codes: with these, distances are less precise, and
    searches are no faster (`benchmarks/partition_costs.py`).
    """
    parts = len(files.codebook)
    index = faiss.IndexIVFPQ(quantizer, files.dim, files.num_partitions, parts, files.bits, metric)
    index.by_residual = has_residual(files.metric)
    faiss.copy_array_to_vector(files.codebook.reshape(-1), index.pq.centroids)
    index.use_precomputed_table = -1
    return index


def has_residual(metric: str) -> bool:
    """Return whether residuals are encoded: vectors less their centroid."""
    return metric != "dot"
