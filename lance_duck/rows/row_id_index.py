"""The index from stable row ids to row addresses.

It stores the segments of all fragments with their lowest and highest id, instead of an entry for each row. An id may be
listed twice: in an old fragment whose row was deleted, and in the fragment that the row moved to. Lookups only return
live rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows.deletion import DeletionVector
from lance_duck.rows.row_ids import RowIdSequence, row_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.segment import Ids, U64Segment


class RowIdIndex:
    """An index that finds the addresses of rows by their stable ids.

    Args:
        fragments: Id and row ids of each fragment.
        deletions: Returns the deletion vector of the i-th fragment. Called only for fragments that contain requested
            ids.
    """

    def __init__(
        self, fragments: Sequence[tuple[int, RowIdSequence]], deletions: Callable[[int], DeletionVector | None]
    ) -> None:
        self._ids = [fragment_id for fragment_id, _ in fragments]
        self._deletions = deletions
        self._segments: list[U64Segment] = []
        owners: list[int] = []
        bases: list[int] = []
        for place, (_, sequence) in enumerate(fragments):
            for segment, base in zip(sequence.segments, sequence.bounds.tolist(), strict=False):
                if segment.count:
                    self._segments.append(segment)
                    owners.append(place)
                    bases.append(base)
        self._owners, self._bases = owners, bases
        self._lows = np.array([s.low for s in self._segments], np.uint64)
        self._highs = np.array([s.high for s in self._segments], np.uint64)

    def __len__(self) -> int:
        """Return the number of segments."""
        return len(self._segments)

    def addresses(self, ids: NDArray[np.integer]) -> tuple[Ids, NDArray[np.bool_]]:
        """Return the address of the live row with each id (0 if it does not exist), and whether it exists."""
        targets = ids.astype(np.uint64, copy=False)
        order = None if (targets[1:] >= targets[:-1]).all() else np.argsort(targets, kind="stable")
        ascending = targets if order is None else targets[order]
        addresses = np.zeros(len(targets), np.uint64)
        lives = np.zeros(len(targets), np.bool_)
        first = np.searchsorted(ascending, self._lows, side="left")
        last = np.searchsorted(ascending, self._highs, side="right")
        for i in np.flatnonzero(first < last).tolist():
            begin, end = int(first[i]), int(last[i])
            self._look(i, ascending[begin:end], addresses[begin:end], lives[begin:end])
        if order is None:
            return addresses, lives
        result, alive = np.empty_like(addresses), np.empty_like(lives)
        result[order], alive[order] = addresses, lives
        return result, alive

    def clip(self, ids: RowSet) -> RowSet:
        """Return the ids that lie within the id range of at least one segment.

        Their number is close to the row count, even if `ids` contains many more.
        """
        ranges: list[tuple[int, int, int]] = []
        for low, high in zip(self._lows.tolist(), self._highs.tolist(), strict=True):
            for key in range(low >> 32, (high >> 32) + 1):
                if key in ids.parts:
                    base = key << 32
                    ranges.append((key, max(low - base, 0), min(high - base + 1, 1 << 32)))
        return ids & RowSet.of_ranges(ranges)

    def _look(self, i: int, ids: Ids, addresses: Ids, lives: NDArray[np.bool_]) -> None:
        places = self._segments[i].find(ids)
        hits = np.flatnonzero((places >= 0) & ~lives)
        if not len(hits):
            return
        offsets = places[hits] + self._bases[i]
        owner = self._owners[i]
        deletions = self._deletions(owner)
        if deletions is not None:
            live = ~deletions.contains(offsets)
            hits, offsets = hits[live], offsets[live]
        addresses[hits] = row_addresses(self._ids[owner], offsets)
        lives[hits] = True
