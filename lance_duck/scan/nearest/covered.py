"""Maps the entries of a segment to table rows, and computes masks of the entries to search."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.names import Follower
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.rows.row_positions import Slots
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import NAMED_SHARE
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path

Mask = NDArray[np.bool_]


class CoveredRows:
    """The rows of a segment in one version of the table. Row ids and addresses are read on first use.

    Args:
        snapshot: The version.
        segment: The segment.
        names: Function that returns the row id or address that the segment stores for each entry, uint64 (entries,).
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, names: Callable[[], NDArray[np.uint64]]) -> None:
        self._follower = Follower(snapshot, segment)
        self._names = names
        self._fragments = segment.fragments
        sizes = [snapshot.physical_rows(snapshot.fragment(i)) for i in segment.fragments.tolist()]
        self._slots = Slots(segment.fragments, np.array(sizes, np.int64))

    @cached_property
    def followed(self) -> tuple[NDArray[np.uint64], Mask]:
        """The row address of each entry, and whether the row is live: see `addresses` and `lives`."""
        addresses, lives = self._follower.follow(self._names())
        lives.flags.writeable = False
        return addresses, lives

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """uint64 (entries,), the row address of each entry. It is undefined if the row is deleted.

        Raises:
            CorruptError: A row is past the end of its fragment.
        """
        return self.followed[0]

    @property
    def lives(self) -> Mask:
        """Whether each entry's row is live and its fragment is covered by the segment, bool (entries,).

        Raises:
            CorruptError: A row is past the end of its fragment.
        """
        return self.followed[1]

    def allowed(self, rows: RowSet | None, fragments: frozenset[int]) -> tuple[Mask | None, int]:
        """Return a mask of the entries that may be found, or None for all entries, and the number of these entries.

        Args:
            rows: Addresses of the rows that pass a filter. None means all rows.
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


class CoveredVectors(CoveredRows):
    """The rows of a vector segment in one version of the table.

    If the metadata does not show deleted or moved rows, a search may assume that all rows are live. It then reads only
    the ids of the rows that it finds, and repeats the search if one of these rows is deleted. After many lookups, all
    ids are read at once. This is not necessary in an object store, where ids are cached with the codes of a partition.

    Args:
        snapshot: The version.
        segment: The segment.
        index: The opened segment.
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, index: VectorIndex) -> None:
        super().__init__(snapshot, segment, index.rows)
        self._index = index
        self._is_remote = local_path(snapshot.uri) is None
        self._asked = 0

    def presumed(self, fragments: frozenset[int]) -> tuple[Mask | None, int]:
        """Like `allowed` without a filter, but assume that all rows are live until the ids are read.

        Args:
            fragments: Ids of the fragments that are searched.
        """
        count = self._index.num_rows
        known = self.is_known or self._follower.has_lost or count > self._follower.num_rows
        if known or not fragments.issuperset(self._fragments.tolist()):
            return self.allowed(None, fragments)
        return None, count

    def know(self) -> None:
        """Read the ids of all rows, to find out which rows are deleted."""
        self.followed  # noqa: B018

    def found(self, positions: NDArray[np.int64]) -> NDArray[np.uint64] | None:
        """Return the row addresses of entries, uint64 (n,), or None if one of the rows is deleted.

        Args:
            positions: int64 (n,), the indices of entries that a search of all rows or of live rows found.

        Raises:
            CorruptError: One of these rows is past the end of its fragment.
        """
        self._asked += len(positions)
        if self.is_known or (self._asked * NAMED_SHARE > self._index.num_rows and not self._is_remote):
            addresses, all_live = self.addresses[positions], self._living == len(self.lives)
            return addresses if all_live or self.lives[positions].all() else None
        addresses, lives = self._follower.follow(self._index.files.rows_at(positions))
        return addresses if lives.all() else None

    @property
    def known_addresses(self) -> NDArray[np.uint64] | None:
        """`addresses` if the ids of all rows have been read, and all rows are live."""
        return self.addresses if self.is_known and self._living == len(self.lives) else None

    @property
    def is_known(self) -> bool:
        """Whether the ids of all rows have been read."""
        return "followed" in self.__dict__


def covered_vectors(snapshot: Snapshot, segment: Segment, index: VectorIndex) -> CoveredVectors:
    """Return the rows of a vector segment. For one version, this always returns the same object."""
    return snapshot.derived(("vector rows", segment.uuid), lambda: CoveredVectors(snapshot, segment, index))
