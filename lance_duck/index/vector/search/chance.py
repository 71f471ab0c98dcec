"""Detects filters that are tied to the vectors: their allowed vectors are more unevenly distributed than by chance.

Search settings are measured with randomly allowed vectors. If a filter allows some clusters but not others, the
neighbours of a query may be in partitions that these settings do not reach: see `frontier`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import ALLOWED_OF_EXPECTED, DEVIATIONS, TIED_DEVIATIONS, TIED_UNEVENNESS
from lance_duck.index.vector.layout import Partitions

Counts = NDArray[np.int64]


class AllowedCounts:
    """Counts allowed vectors per partition, and caches the counts of the last mask. Safe to use from several threads.

    Args:
        partitions: Partitions of the segment.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        self._last: tuple[NDArray[np.bool_], Counts, bool] | None = None

    def of(self, allowed: NDArray[np.bool_]) -> Counts:
        """Return the number of allowed vectors in each partition, int64 (partitions,).

        Args:
            allowed: bool (vectors,): whether each vector may be found.
        """
        return self._counted(allowed)[0]

    def are_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether the share of allowed vectors differs between partitions by more than chance explains.

        Args:
            allowed: bool (vectors,): whether each vector may be found.
        """
        return self._counted(allowed)[1]

    def are_few(self, allowed: NDArray[np.bool_], share: float, nearest: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each query's nearest partitions have far fewer allowed vectors than chance explains.

        Args:
            allowed: bool (vectors,): whether each vector may be found.
            share: Share of the vectors that may be found, 0 to 1.
            nearest: int64 (queries, n): the nearest partitions, or -1.
        """
        is_there = nearest >= 0
        counts = np.where(is_there, self.of(allowed)[nearest], 0).sum(axis=1)
        return are_few(counts, share * np.where(is_there, self._partitions.lengths[nearest], 0).sum(axis=1))

    def _counted(self, allowed: NDArray[np.bool_]) -> tuple[Counts, bool]:
        last = self._last
        if last is not None and last[0] is allowed and not allowed.flags.writeable:
            return last[1:]
        partitions = self._partitions
        counts = np.zeros(len(partitions), np.int64)
        filled = np.flatnonzero(partitions.lengths)
        counts[filled] = np.add.reduceat(allowed, partitions.offsets[filled], dtype=np.int64)
        tied = are_uneven(counts[filled], partitions.lengths[filled])
        self._last = allowed, counts, tied
        return counts, tied


def are_uneven(counts: Counts, sizes: Counts) -> bool:
    """Return whether the share of allowed vectors differs significantly and substantially between groups.

    Args:
        counts: Number of allowed vectors in each group.
        sizes: Number of vectors in each group, at least 1.
    """
    total, chosen = int(sizes.sum()), int(counts.sum())
    if len(counts) < 2 or not 0 < chosen < total:
        return False
    share = chosen / total
    squares = (counts - share * sizes) ** 2
    by_chance = share * (1 - share) * sizes
    dispersion = float((squares / by_chance).mean())
    excess = float(((squares - by_chance) / sizes).sum()) / (share**2 * total)  # weighs groups by size
    return dispersion > 1 + TIED_DEVIATIONS * math.sqrt(2 / len(counts)) and excess > TIED_UNEVENNESS**2


def are_few(counts: Counts, expected: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return a mask of the counts of allowed vectors that are far below their expected values.

    Also true if the expected value is 0, because the partitions then do not show where neighbours are.
    """
    few: NDArray[np.bool_] = counts < np.minimum(
        ALLOWED_OF_EXPECTED * expected, expected - DEVIATIONS * np.sqrt(expected)
    )
    return few | (expected <= 0)
