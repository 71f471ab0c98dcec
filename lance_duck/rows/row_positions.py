"""Positions in an array that has one value for each row of some fragments, fragment by fragment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows.costs import TABLE_IDS
from lance_duck.wire.limits import OFFSET_MASK

Addresses = NDArray[np.uint64]

_HIGH = np.uint64(32)
_LOW = np.uint64(OFFSET_MASK)


class Slots:
    """A map from the rows of some fragments to consecutive positions.

    Attributes:
        total: Total row count of the fragments.
        starts: Position of the first row of each fragment.

    Args:
        fragment_ids: Ids of the fragments, ascending.
        sizes: Number of rows of each fragment.
    """

    def __init__(self, fragment_ids: NDArray[np.integer], sizes: NDArray[np.integer]) -> None:
        ends = np.cumsum(sizes, dtype=np.int64)
        self.total = int(ends[-1]) if len(ends) else 0
        self.starts = ends - sizes
        self._ids = fragment_ids.astype(np.uint64)
        self._starts = np.append(self.starts, 0)
        self._sizes = np.append(sizes, 0).astype(np.int64)
        self._table = self._of_each_id() if len(self._ids) and int(self._ids[-1]) < TABLE_IDS else None

    def find(self, addresses: Addresses) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the position of each row, a mask of rows with a position, and a mask of rows in these fragments.

        A row past the end of one of these fragments does not have a position. For rows without a position, 0 is
        returned.
        """
        if len(self._ids) == 1:
            return self._find_in_one(addresses)
        fragment = self._fragment(addresses >> _HIGH)
        place = (addresses & _LOW).astype(np.int64)
        within = place < self._sizes[fragment]
        place += self._starts[fragment]
        place *= within
        return place, within, fragment < len(self._ids)

    def _find_in_one(self, addresses: Addresses) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Like `find`, for a single fragment. Skips the lookups, which take most of the time."""
        offsets = addresses - (self._ids[0] << _HIGH)  # smaller addresses wrap around to very large ones
        within = offsets < np.uint64(self._sizes[0])
        covered = offsets <= _LOW
        offsets *= within
        return offsets.view(np.int64), within, covered

    def _fragment(self, ids: NDArray[np.uint64]) -> NDArray[np.integer]:
        """Return the index of each fragment id, or the fragment count for unknown ids."""
        if self._table is not None:
            positions: NDArray[np.integer] = self._table[
                np.minimum(ids, np.uint64(len(self._table) - 1)).view(np.int64)
            ]
            return positions
        near = np.searchsorted(self._ids, ids)
        same = np.append(self._ids, 0)[near] == ids
        return np.where(same & (near < len(self._ids)), near, len(self._ids))

    def _of_each_id(self) -> NDArray[np.int32]:
        table = np.full(int(self._ids[-1]) + 2, len(self._ids), np.int32)
        table[self._ids.astype(np.int64)] = np.arange(len(self._ids))
        return table
