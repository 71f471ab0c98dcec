"""Product quantisation: of each part of a vector the number of the nearest of 256 or 16 parts in a codebook.

    __pq_code    fixed_size_list<uint8, bytes of a code>; of each partition transposed: byte 0 of all its rows, then
                 byte 1, …; with 4 bits there are two parts in a byte, the lower half first
    codebook     float32 [sub-vectors][2 ** bits][dim / sub-vectors]
    metadata     {"codebook_position", "nbits", "num_sub_vectors", "dimension", "transposed"}

Codes are of what is left of a vector without its centroid, for l2 and cosine; for dot of the vector itself. faiss's
codes and codebooks are the same, by rows.
"""

from __future__ import annotations

from typing import Any, Final

import faiss

from lance_duck.index.vector.files import VectorFiles

_TABLE_BYTES: Final = 1 << 26


def product_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """A faiss index over empty lists of codes; arguments as for `flat.flat_lists`."""
    parts, entries, _ = files.codebook.shape
    index = faiss.IndexIVFPQ(quantizer, files.dim, files.num_partitions, parts, files.bits, metric)
    index.by_residual = has_residual(files.metric)
    faiss.copy_array_to_vector(files.codebook.reshape(-1), index.pq.centroids)
    index.use_precomputed_table = -1
    if index.by_residual and files.num_partitions * parts * entries * 4 <= _TABLE_BYTES:
        index.use_precomputed_table = 1
        index.precompute_table()
    return index


def has_residual(metric: str) -> bool:
    """Whether codes are of vectors less their centroid."""
    return metric != "dot"
