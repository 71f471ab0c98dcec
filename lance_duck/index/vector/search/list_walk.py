"""Searches of inverted lists for one query at a time, with everything prepared that does not depend on the query."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.search.lists import Lists
from lance_duck.index.vector.threads import one_thread, safe_after_fork

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete


class _ListBuffers:
    """Memory of one search, with the arguments of faiss's searches that refer to it."""

    def __init__(self, dim: int, k: int, nprobes: int, parameters: Any) -> None:
        self.query = np.empty((1, dim), np.float32)
        self.coarse = np.empty((1, nprobes), np.float32)
        self.partitions = np.empty((1, nprobes), np.int64)
        self.distances = np.empty((1, k), np.float32)
        self.positions = np.empty((1, k), np.int64)
        pointers = map(_FAISS.swig_ptr, (self.query, self.coarse, self.partitions, self.distances, self.positions))
        query, coarse, partitions, distances, positions = pointers
        self.of_centroids = 1, query, nprobes, coarse, partitions
        self.of_lists = 1, query, k, partitions, coarse, distances, positions, False, parameters


class ListWalk:
    """A search of the nearest partitions without a filter. Safe to use from several threads.

    Args:
        lists: The lists of the segment.
        k: Number of neighbours.
        nprobes: Number of partitions to search.
        parameters: faiss parameters of the search.
    """

    def __init__(self, lists: Lists, k: int, nprobes: int, parameters: Any) -> None:
        self._lists = lists
        self._sizes = lists.files.dim, k, nprobes, parameters
        self._metric, self._rounding = lists.files.metric, lists.files.rounding
        self._free: list[_ListBuffers] = []

    @safe_after_fork
    def nearest(self, query: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """Return the nearest neighbours: see `contract.SingleSearch.nearest`."""
        try:
            buffers = self._free.pop()
        except IndexError:
            buffers = _ListBuffers(*self._sizes)
        lists, vector = self._lists, query[None]
        if self._metric == "cosine":
            vector = normalized(vector)
        buffers.query[:] = (
            vector if self._rounding is None else self._rounding.rotation.of(np.ascontiguousarray(vector))
        )
        lists.quantizer.search_c(*buffers.of_centroids)
        lists.leave_out_empty(buffers.partitions)
        loaded = lists.with_lists(buffers.partitions)  # keeps the lists during the search, if others replace them
        with one_thread(lists.is_threaded):
            loaded.index.search_preassigned_c(*buffers.of_lists)
        distances, positions = buffers.distances[0].copy(), buffers.positions[0].copy()
        self._free.append(buffers)
        if positions[-1] < 0:
            return None
        if self._metric == "dot":
            np.subtract(1, distances, out=distances)
        elif self._metric == "cosine":
            distances *= np.float32(0.5)
        return distances, positions
