"""Compares queries with the centroids of partitions, to find near partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import SLICE_QUERIES
from lance_duck.index.vector.library import faiss, queries_without_products
from lance_duck.index.vector.threads import in_slices, one_thread


def near_partitions(
    centroids: Any, queries: NDArray[np.float32], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return the partitions with the nearest centroids for each query, nearest first, with faiss's distances.

    The result for a query does not depend on other queries in the batch, because each call is too small for faiss to
    multiply matrices. Slices of queries are distributed over threads. The threads of faiss would spin while they wait
    for each other, for longer than the comparisons take.

    Args:
        centroids: faiss index of the centroids.
        queries: float32 (queries, dim), C-contiguous.
        count: Number of partitions per query.

    Returns:
        Distances, float32 (queries, count), and partitions, int64 (queries, count); -1 for missing partitions.
    """
    distances = np.empty((len(queries), count), np.float32)
    places = np.empty((len(queries), count), np.int64)

    most = queries_without_products(queries.shape[1])

    def ask(span: slice) -> None:
        with one_thread():
            for first in range(span.start, span.stop, most):
                few = slice(first, min(first + most, span.stop))
                _search(centroids, queries[few], count, distances[few], places[few])

    if len(queries) == 1:
        _search(centroids, queries, count, distances, places)
    else:
        in_slices(ask, len(queries), SLICE_QUERIES)
    return distances, places


def _search(
    centroids: Any,
    queries: NDArray[np.float32],
    count: int,
    distances: NDArray[np.float32],
    places: NDArray[np.int64],
) -> None:
    """Write the nearest centroids of queries to `places`, and their distances to `distances`, using faiss."""
    pointers = faiss.swig_ptr(queries), count, faiss.swig_ptr(distances), faiss.swig_ptr(places)
    centroids.search_c(len(queries), *pointers)
