"""Ranks of partitions. The rank for a query and a vector is the number of partitions nearer than the vector's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.vector.open import VectorFiles

Int64s = NDArray[np.int64]


def partition_ranks(
    files: VectorFiles, queries: NDArray[Any], positions: Int64s, nearest_first: Callable[[NDArray[Any]], Int64s]
) -> Int64s:
    """Return the ranks of the partitions of some vectors: see `contract.VectorIndex.partition_ranks`.

    Args:
        files: Files of the segment.
        queries: (queries, dim), in the form in which searches compare them with centroids.
        positions: int64 (queries, m); -1 for missing vectors.
        nearest_first: Function that returns all partitions for each query, nearest first: int64 (queries, partitions).
    """
    partitions = files.partitions
    ranks = np.full(positions.shape, len(partitions), np.int64)
    if not partitions.lengths.any():
        return ranks
    owners = partitions.owners(np.maximum(positions, 0))
    step = max(INDEX_BLOCK_ROWS // len(partitions), 1)
    for start in range(0, len(queries), step):
        order = nearest_first(np.ascontiguousarray(queries[start : start + step]))
        places = np.empty_like(order)
        np.put_along_axis(places, order, np.arange(order.shape[1])[None], axis=1)
        ranks[start : start + step] = np.take_along_axis(places, owners[start : start + step], axis=1)
    ranks[positions < 0] = len(partitions)
    return ranks
