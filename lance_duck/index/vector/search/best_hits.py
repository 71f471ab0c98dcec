"""Merges the results of several searches, and keeps the nearest vectors of each query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.search.contract import Hits

Distances = NDArray[np.float32]
Int64s = NDArray[np.int64]


class BestHits:
    """The nearest vectors of each query so far.

    Attributes:
        k: Number of neighbours per query, at most the number of vectors.

    Args:
        queries: Number of queries.
        k: Requested number of neighbours per query.
        num_rows: Number of vectors.
    """

    def __init__(self, queries: int, k: int, num_rows: int) -> None:
        self.k = min(k, num_rows)
        self._width = k
        self._distances = np.full((queries, self.k), np.inf, np.float32)
        self._positions = np.full((queries, self.k), -1, np.int64)

    def put(self, distances: Distances, positions: Int64s) -> None:
        """Merge neighbours of all queries. Only for the first call: k neighbours per query replace all earlier ones."""
        if distances.shape[1] == self.k and (not self.k or positions.min() >= 0):
            self._distances, self._positions = distances, positions
        else:
            self.merge(np.arange(len(distances)), distances, positions)

    def merge(self, queries: Int64s, distances: Distances, positions: Int64s) -> None:
        """Merge neighbours of the given queries. Positions of -1 are ignored."""
        distances = np.hstack([self._distances[queries], np.where(positions < 0, np.float32(np.inf), distances)])
        positions = np.hstack([self._positions[queries], positions])
        order = np.argsort(distances, axis=1, kind="stable")[:, : self.k]
        self._distances[queries] = np.take_along_axis(distances, order, axis=1)
        self._positions[queries] = np.take_along_axis(positions, order, axis=1)

    def are_short(self, queries: Int64s) -> NDArray[np.bool_]:
        """Return a mask of the given queries that have fewer than k neighbours."""
        short: NDArray[np.bool_] = self._positions[queries, -1] < 0
        return short

    @property
    def limits(self) -> Distances:
        """float32 (queries,), distance of each query's k-th neighbour, or inf if the query has fewer neighbours."""
        return self._distances[:, -1]

    def hits(self) -> Hits:
        """Return the neighbours. Queries with fewer than k are padded with infinity and -1."""
        num_missing = self._width - self.k
        if not num_missing:
            return Hits(self._distances, self._positions)
        return Hits(
            np.pad(self._distances, ((0, 0), (0, num_missing)), constant_values=np.float32(np.inf)),
            np.pad(self._positions, ((0, 0), (0, num_missing)), constant_values=-1),
        )
