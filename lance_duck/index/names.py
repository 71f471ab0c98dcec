"""Translation of stored row ids and addresses to current addresses in a segment's fragments."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InternalError
from lance_duck.index.catalog import Segment
from lance_duck.index.reuse import reuse_of
from lance_duck.rows.row_id_index import RowIdIndex
from lance_duck.rows.row_positions import Slots
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot

_FEW = 1 << 16  # larger sets of stable row ids are first reduced to ids that a fragment can contain
_NOWHERE = np.uint64(2**64 - 1)  # the largest fragment id is never used
_LISTED_SHARE = 4  # with more than 1/4 of all rows requested, a mask of all live rows is built


def covered_rows(snapshot: Snapshot, segment: Segment, names: RowSet) -> RowSet:
    """Return the addresses of rows in a segment's fragments. With stable row ids, only live rows are returned.

    Raises:
        CorruptError: A row lies past the end of its fragment.
    """
    if segment.by_row_id:
        index = _ids(snapshot)
        covered = names if len(names) <= _FEW else index.clip(names)
        addresses, lives = index.addresses(covered.rows())
        return RowSet.of(addresses[lives]).only(segment.fragments.tolist())
    moved = _moved(snapshot, segment)
    if moved is not None:
        names = RowSet({moved[old]: part for old, part in names.parts.items() if old in moved})
    reuse = reuse_of(snapshot) if moved is None else None
    rows = (names if reuse is None else reuse.follow_rows(names)).only(segment.fragments.tolist())
    check_rows(snapshot, segment, rows)
    return rows


class Follower:
    """Translates stored row ids or addresses to current addresses, batch by batch.

    Args:
        snapshot: Version of the table.
        segment: Segment of its catalog.
        keeps_deleted: Whether deleted rows count as live if the segment stores row addresses.
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, *, keeps_deleted: bool = False) -> None:
        self._segment = segment
        self._keeps_deleted = keeps_deleted
        self._ids = _ids(snapshot) if segment.by_row_id else None
        self._moved = _moved(snapshot, segment)
        self._reuse = None if segment.by_row_id or self._moved is not None else reuse_of(snapshot)
        fragments = [snapshot.fragment(i) for i in segment.fragments.tolist()]
        self._sizes = np.array([snapshot.physical_rows(f) for f in fragments], np.int64)
        self._deleted = [snapshot.deletion_vector(f) for f in fragments]
        self._has_deleted = any(vector is not None for vector in self._deleted)
        self._slots = Slots(segment.fragments, self._sizes)
        self._living: NDArray[np.bool_] | None = None
        self._asked = 0

    @property
    def num_rows(self) -> int:
        """Physical row count of the covered fragments, including deleted rows."""
        return self._slots.total

    @property
    def has_lost(self) -> bool:
        """Whether rows of the covered fragments were deleted, or a fragment reuse index maps moved rows."""
        return self._has_deleted or self._reuse is not None

    def follow(self, names: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Return the current address of each row, and a mask of the live rows in the segment's fragments.

        The rows may be in any order.

        Raises:
            CorruptError: A row lies past the end of its fragment.
        """
        if self._ids is not None:
            addresses, lives = self._ids.addresses(names)
            return addresses, lives & np.isin(addresses >> np.uint64(32), self._segment.fragments)
        if self._moved is not None:
            names = _readdressed(names, self._moved)
        addresses, living = (names, None) if self._reuse is None else self._reuse.follow(names)
        place, within, covered = self._slots.find(addresses)
        if living is not None:
            covered &= living
        is_beyond = covered > within
        if is_beyond.any():
            self._refuse(int(addresses[int(is_beyond.argmax())]))
        if self._keeps_deleted or not self._has_deleted:
            return addresses, covered
        return addresses, covered & self._lives(addresses, place, covered)

    def _lives(
        self, addresses: NDArray[np.uint64], place: NDArray[np.int64], covered: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Return a mask of the rows that are not deleted. The values of rows that are not covered are arbitrary."""
        self._asked += len(addresses)
        if self._living is None and self._asked * _LISTED_SHARE >= self._slots.total:
            self._living = self._all_living()
        if self._living is not None:  # for many rows, a mask of all rows is faster
            return self._living[place]
        lives = np.ones(len(addresses), np.bool_)
        keys = addresses >> np.uint64(32)
        for fragment_id, vector in zip(self._segment.fragments.tolist(), self._deleted, strict=True):
            if vector is not None:
                places = np.flatnonzero(covered & (keys == fragment_id))
                lives[places] = ~vector.contains(addresses[places].astype(np.uint32))
        return lives

    def _all_living(self) -> NDArray[np.bool_]:
        living = np.ones(self._slots.total + 1, np.bool_)
        for vector, start in zip(self._deleted, self._slots.starts.tolist(), strict=True):
            if vector is not None:
                living[start + vector.deleted.astype(np.int64)] = False
        return living

    def _refuse(self, row: int) -> None:
        physical = int(self._sizes[self._segment.fragments == row >> 32][0])
        raise CorruptError(
            f"a row offset is out of range in fragment {row >> 32}",
            where=self._segment,
            expected=f"below {physical}",
            found=row & 0xFFFFFFFF,
        )


def check_rows(snapshot: Snapshot, segment: Segment, rows: RowSet) -> None:
    """Check that no row lies past the end of its fragment.

    Raises:
        CorruptError: A row lies past the end of its fragment.
    """
    for fragment_id, part in rows.parts.items():
        physical = snapshot.physical_rows(snapshot.fragment(fragment_id))
        if part.max() >= physical:
            raise CorruptError(
                f"a row offset is out of range in fragment {fragment_id}",
                where=segment,
                expected=f"below {physical}",
                found=part.max(),
            )


def _moved(snapshot: Snapshot, segment: Segment) -> Mapping[int, int] | None:
    """Return the new ids of the fragments whose rows a segment of an SSTable stores, or None for other segments."""
    base_id = segment.metadata.base_id
    return None if base_id is None else snapshot.moved.get(base_id)


def _readdressed(addresses: NDArray[np.uint64], moved: Mapping[int, int]) -> NDArray[np.uint64]:
    """Return addresses with new fragment ids. Addresses of unknown fragments get an id that no fragment has."""
    result = np.full_like(addresses, _NOWHERE)
    for old, new in moved.items():
        is_here = addresses >> np.uint64(32) == old
        result[is_here] = addresses[is_here] & np.uint64(0xFFFFFFFF) | np.uint64(new << 32)
    return result


def _ids(snapshot: Snapshot) -> RowIdIndex:
    index = snapshot.row_id_index
    if index is None:
        raise InternalError("the table does not have row ids", where=snapshot.uri)
    return index
