"""Collects the k nearest rows of each query, nearest first. Rows at equal distances are ordered by address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import InvalidInputError

MOST: Final = 1 << 27
"""Maximum total number of neighbours of all queries. This limits memory."""

NOWHERE: Final = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class Neighbours:
    """Rows near the queries, as pairs of a query and a row.

    Attributes:
        queries: int64 (pairs,), the index of the query.
        distances: float32 (pairs,). Infinite if float32 overflows, never NaN.
        addresses: uint64 (pairs,), the address of the row.
    """

    queries: NDArray[np.int64]
    distances: NDArray[np.float32]
    addresses: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.distances)

    def where(self, mask: NDArray[np.bool_]) -> Neighbours:
        """Return the pairs that the mask selects."""
        return Neighbours(self.queries[mask], self.distances[mask], self.addresses[mask])


class TopK:
    """Keeps the k nearest rows of each query.

    Args:
        count: Number of queries.
        k: Number of rows to keep per query.

    Raises:
        InvalidInputError: count * k is more than `MOST`.
    """

    def __init__(self, count: int, k: int) -> None:
        if count * k > MOST:
            raise InvalidInputError("k is too large", where="nearest", expected=f"at most {MOST}", found=count * k)
        self.count = count
        self.k = k
        self._distances = np.full((count, k), np.inf, np.float32)
        self._addresses = np.full((count, k), NOWHERE, np.uint64)

    @property
    def limits(self) -> NDArray[np.float32]:
        """float32 (queries,), the distance above which a row is not among the k nearest."""
        return self._distances[:, -1]

    def add(self, rows: Neighbours) -> None:
        """Add rows that were not added before."""
        if not len(rows):
            return
        if self.count == 1:
            self._add_to_one(rows)
            return
        which = np.concatenate([np.repeat(np.arange(self.count), self.k), rows.queries])
        distances = np.concatenate([self._distances.ravel(), rows.distances])
        addresses = np.concatenate([self._addresses.ravel(), rows.addresses])
        order = np.lexsort((addresses, distances, which))
        sizes = np.bincount(which, minlength=self.count)
        rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        best = order[rank < self.k]
        self._distances = distances[best].reshape(self.count, self.k)
        self._addresses = addresses[best].reshape(self.count, self.k)

    def _add_to_one(self, rows: Neighbours) -> None:
        distances = np.concatenate([self._distances[0], rows.distances])
        addresses = np.concatenate([self._addresses[0], rows.addresses])
        order = np.lexsort((addresses, distances))[: self.k]
        self._distances, self._addresses = distances[order][None], addresses[order][None]

    def neighbours(self) -> Neighbours:
        """Return the k nearest rows of each query, ordered by query and distance."""
        is_row = self._addresses != NOWHERE
        return Neighbours(np.nonzero(is_row)[0], self._distances[is_row], self._addresses[is_row])


def joined_neighbours(results: Sequence[Neighbours]) -> Neighbours:
    """Concatenate the neighbours of several results."""
    if len(results) == 1:
        return results[0]
    if not results:
        return Neighbours(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint64))
    return Neighbours(
        np.concatenate([each.queries for each in results]),
        np.concatenate([each.distances for each in results]),
        np.concatenate([each.addresses for each in results]),
    )


def ranked_neighbours(rows: Neighbours, count: int, k: int) -> Neighbours:
    """Return the k nearest rows of each query, like `TopK`, ordered by query and distance.

    Args:
        rows: Neighbours of `count` queries, in any order. The function is fastest if they are ordered by query and
            distance.
        count: Number of queries.
        k: Number of rows to keep per query.
    """
    distances, queries = rows.distances, rows.queries
    ascending = distances[1:] > distances[:-1]
    if count == 1:
        if len(distances) <= k and np.logical_and.reduce(ascending):
            return rows
        order = np.lexsort((rows.addresses, distances))[:k]
        return Neighbours(queries[order], distances[order], rows.addresses[order])
    ascending &= queries[1:] == queries[:-1]
    ascending |= queries[1:] > queries[:-1]
    if np.logical_and.reduce(ascending) and (not len(queries) or np.bincount(queries).max() <= k):
        return rows
    best = TopK(count, k)
    best.add(rows)
    return best.neighbours()


def smallest(distances: NDArray[np.float32], k: int, limit: float) -> NDArray[np.int64]:
    """Return the indices of the k smallest distances up to a limit, and of ties with the k-th. NaN is skipped."""
    places = np.flatnonzero(distances <= np.float32(limit))
    near = distances[places]
    if len(places) > k:
        places = places[near <= np.partition(near, k - 1)[k - 1]]
    return places
