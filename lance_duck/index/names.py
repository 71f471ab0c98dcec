"""From the names that a segment gives rows to addresses in the fragments that it answers for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InternalError
from lance_duck.index.catalog import Segment
from lance_duck.index.reuse import reuse_of
from lance_duck.rows.row_id_index import RowIdIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot

_FEW = 1 << 16


def covered_rows(snapshot: Snapshot, segment: Segment, names: RowSet) -> RowSet:
    """Return the addresses of rows, in the fragments of a segment; of rows known by stable id only those that live.

    Raises:
        CorruptError: A row lies beyond the end of its fragment.
    """
    if segment.by_row_id:
        index = _ids(snapshot)
        wanted = names if len(names) <= _FEW else index.clip(names)
        addresses, lives = index.addresses(wanted.rows())
        return RowSet.of(addresses[lives]).only(segment.fragments.tolist())
    reuse = reuse_of(snapshot)
    rows = (names if reuse is None else reuse.follow_rows(names)).only(segment.fragments.tolist())
    check_rows(snapshot, segment, rows)
    return rows


def follow_names(
    snapshot: Snapshot, segment: Segment, names: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the addresses of rows in any order, and whether each is a living row of a fragment of the segment.

    Raises:
        CorruptError: A row lies beyond the end of its fragment.
    """
    if segment.by_row_id:
        addresses, lives = _ids(snapshot).addresses(names)
        return addresses, lives & np.isin(addresses >> np.uint64(32), segment.fragments)
    reuse = reuse_of(snapshot)
    addresses, kept = (names, np.ones(len(names), np.bool_)) if reuse is None else reuse.follow(names)
    check_rows(snapshot, segment, RowSet.of(addresses[kept]).only(segment.fragments.tolist()))
    return addresses, kept & _living(snapshot, segment, addresses)


def check_rows(snapshot: Snapshot, segment: Segment, rows: RowSet) -> None:
    """Refuse rows beyond the end of their fragment.

    Raises:
        CorruptError: There are such rows.
    """
    for fragment_id, part in rows.parts.items():
        physical = snapshot.physical_rows(snapshot.fragment(fragment_id))
        if part.max() >= physical:
            raise CorruptError(
                f"row of fragment {fragment_id}", where=segment, expected=f"below {physical}", found=part.max()
            )


def _living(snapshot: Snapshot, segment: Segment, addresses: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Whether each address is of a row of the segment's fragments that is not deleted."""
    keys = (addresses >> np.uint64(32)).astype(np.uint32)
    lives = np.isin(keys, segment.fragments)
    for fragment_id in np.unique(keys[lives]).tolist():
        deleted = snapshot.deletion_vector(snapshot.fragment(fragment_id))
        if deleted is not None:
            mine = np.flatnonzero(keys == fragment_id)
            lives[mine] = ~deleted.contains(addresses[mine].astype(np.uint32))
    return lives


def _ids(snapshot: Snapshot) -> RowIdIndex:
    index = snapshot.row_id_index
    if index is None:
        raise InternalError("row ids of a table that has none", where=snapshot.uri)
    return index
