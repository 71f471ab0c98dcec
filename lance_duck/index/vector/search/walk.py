"""Walks through a graph for one query at a time, with everything prepared that does not depend on the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.threads import safe_after_fork
from lance_duck.kernels.jit import readonly

Measure = Callable[[NDArray[np.float32], NDArray[np.int64], NDArray[np.float32]], None]
"""Computes the distances (1, k) of a query (1, dim) to vectors (1, k) by the codes of a partition."""

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete


class _Buffers:
    """Memory of one walk, with the pointers that faiss takes."""

    def __init__(self, dim: int, k: int) -> None:
        self.query = np.empty((1, dim), np.float32)
        self.distances = np.empty((1, k), np.float32)
        self.places = np.empty((1, k), np.int64)
        self.asked, self.found = readonly(self.query), readonly(self.places)
        self.query_row, self.distance_row, self.place_row = self.query[0], self.distances[0], self.places[0]
        self.pointers = (
            _FAISS.swig_ptr(self.query),
            k,
            _FAISS.swig_ptr(self.distances),
            _FAISS.swig_ptr(self.places),
        )


class GraphWalk:
    """A walk through the graph of one partition without a filter. Safe to use from several threads.

    Args:
        walker: faiss index that searches the graph.
        storage: faiss index of the codes, which `walker` refers to.
        parameters: faiss parameters of the walk.
        measure: Computes exact distances by the codes.
        metric: "l2", "cosine" or "dot".
        k: Number of neighbours, at most the number of vectors.
    """

    def __init__(self, walker: Any, storage: Any, parameters: Any, measure: Measure, metric: str, k: int) -> None:
        self._search = walker.search_c
        self._kept = walker, storage
        self._parameters = parameters
        self._measure = measure
        self._metric = metric
        self._dim = int(storage.d)
        self._k = k
        self._free: list[_Buffers] = []

    @safe_after_fork
    def nearest(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Return the nearest vectors, ordered by faiss's distance, which may differ from `_distance` in the last bits.

        Args:
            query: float32 (dim,), finite.

        Returns:
            Distances as in Lance's `_distance`, float32 (k,), and vectors, int64 (k,). None if the walk finds fewer
            than k vectors.
        """
        try:
            buffers = self._free.pop()
        except IndexError:
            buffers = _Buffers(self._dim, self._k)
        buffers.query_row[:] = normalized(query[None])[0] if self._metric == "cosine" else query
        self._search(1, *buffers.pointers, self._parameters)
        places = buffers.place_row.copy()
        if places[-1] < 0:
            return None
        self._measure(buffers.asked, buffers.found, buffers.distances)
        distances = buffers.distance_row.copy()
        self._free.append(buffers)
        if self._metric == "dot":
            np.subtract(1, distances, out=distances)
        elif self._metric == "cosine":
            distances *= np.float32(0.5)
        return distances, places
