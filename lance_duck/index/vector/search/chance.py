"""Filters that are tied to the vectors: the partitions near to a query hold fewer allowed vectors than chance explains.

Settings are measured for vectors that are allowed by chance. Where a filter allows other clusters than that of a query,
the neighbours of the query lie in partitions that such settings do not reach.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import ALLOWED_OF_EXPECTED, DEVIATIONS
from lance_duck.index.vector.storage.metadata import Partitions

Counts = NDArray[np.int64]


class AllowedCounts:
    """Numbers of allowed vectors by partition; those of the last mask are kept. Safe to use from several threads.

    Args:
        partitions: Partitions of the segment.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._last: tuple[NDArray[np.bool_], Counts] | None = None

    def of(self, allowed: NDArray[np.bool_]) -> Counts:
        """Return the number of allowed vectors in each partition, int64 (partitions,).

        Args:
            allowed: bool (vectors,): whether each vector may be found.
        """
        last = self._last
        if last is not None and last[0] is allowed and not allowed.flags.writeable:
            return last[1]
        partitions = self._partitions
        counts = np.zeros(len(partitions), np.int64)
        filled = np.flatnonzero(partitions.lengths)
        counts[filled] = np.add.reduceat(allowed, partitions.offsets[filled], dtype=np.int64)
        self._last = allowed, counts
        return counts

    def are_few(self, allowed: NDArray[np.bool_], share: float, nearest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether the nearest partitions of each query hold far fewer allowed vectors than chance explains.

        Args:
            allowed: bool (vectors,): whether each vector may be found.
            share: Share of the vectors that may be found, 0 to 1.
            nearest: int64 (queries, n): the nearest partitions; -1 for none.
        """
        is_there = nearest >= 0
        counts = np.where(is_there, self.of(allowed)[nearest], 0).sum(axis=1)
        return are_few(counts, share * np.where(is_there, self._partitions.lengths[nearest], 0).sum(axis=1))


def are_few(counts: Counts, expected: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether numbers of allowed vectors are far below those that chance makes expect."""
    few: NDArray[np.bool_] = counts < np.minimum(
        ALLOWED_OF_EXPECTED * expected, expected - DEVIATIONS * np.sqrt(expected)
    )
    return few
