"""The rows of the table that the entries of a segment stand for, and which of them may be found."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.names import Follower
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.rows.row_positions import Slots
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot

Mask = NDArray[np.bool_]


class CoveredRows:
    """The rows of a segment in one version of the table.

    Attributes:
        addresses: uint64 (entries,): address of the row at each position; meaningless if the row is deleted.
        lives: bool (entries,): whether the row is living, in a fragment that the segment answers for.

    Args:
        snapshot: The version.
        segment: The segment.
        names: uint64 (entries,): row id or address of each entry, as the segment has it.

    Raises:
        CorruptError: A row lies beyond the end of its fragment.
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, names: NDArray[np.uint64]) -> None:
        self.addresses, self.lives = Follower(snapshot, segment).follow(names)
        self.lives.flags.writeable = False
        self._fragments = segment.fragments
        sizes = [snapshot.physical_rows(snapshot.fragment(i)) for i in segment.fragments.tolist()]
        self._slots = Slots(segment.fragments, np.array(sizes, np.int64))

    def allowed(self, rows: RowSet | None, fragments: frozenset[int]) -> tuple[Mask | None, int]:
        """Return a mask of the positions that may be found, None for all, and their number.

        Args:
            rows: Rows that pass a filter, by address; None for all.
            fragments: Ids of the fragments that are searched.
        """
        ids = self._fragments.tolist()
        if rows is None and fragments.issuperset(ids):
            return (None if self._living == len(self.lives) else self.lives), self._living
        flags = np.zeros(self._slots.total + 1, np.bool_)
        ends = [*self._slots.starts.tolist(), self._slots.total][1:]
        for fragment_id, start, end in zip(ids, self._slots.starts.tolist(), ends, strict=True):
            if rows is not None:
                flags[start + rows.offsets(fragment_id)] = fragment_id in fragments
            elif fragment_id in fragments:
                flags[start:end] = True
        mask = flags[self._places] & self.lives
        mask.flags.writeable = False
        return mask, int(np.count_nonzero(mask))

    @cached_property
    def _living(self) -> int:
        return int(np.count_nonzero(self.lives))

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        return self._slots.find(self.addresses)[0]


def covered_vectors(snapshot: Snapshot, segment: Segment, index: VectorIndex) -> CoveredRows:
    """Return the rows of a vector segment; computed once for a version."""
    return snapshot.derived(("vector rows", segment.uuid), lambda: CoveredRows(snapshot, segment, index.rows()))
