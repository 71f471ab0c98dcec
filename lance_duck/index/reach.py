"""The effective coverage of segments that store row addresses, in tables with stable row ids.

Other writers may list a fragment as covered although the segment does not contain its rows. When updates and
compactions move rows, these writers add the new fragments to the list, as if the entries were stable row ids. Versions
of Lance before pylance 14 do this with pylance 14's B-trees (version 1), which they cannot read. pylance 1 does it with
zone maps and Bloom filters. A reader that trusts the list misses rows. pylance 14 merges and rewrites these segments
together with their lists. Therefore neither the version that a segment was built on nor the age of a fragment shows
which lists are right. A segment is trusted to cover

- fragments that do not contain moved rows: the manifest shows that their row ids were new when they were written;
- other fragments, if each live row has an entry, or belongs to a zone. To check this, the rows of all entries are read
  without their values. This happens once per process, and only for segments that list such fragments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct
from lance_duck.errors import LanceDuckError
from lance_duck.forks import Lock
from lance_duck.index.kind import IndexKind, Rows
from lance_duck.index.opened import opened_segment
from lance_duck.rows.row_positions import Slots
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.index import IndexMetadata

FragmentIds = NDArray[np.uint32]
Offsets = NDArray[np.uint32]

_HIGH = np.uint64(32)


@runtime_checkable
class Naming(Protocol):
    """An open segment that can list the rows of all its entries."""

    def names(self) -> Iterator[Rows]:
        """Yield the rows of all entries, batch by batch."""


@runtime_checkable
class Stretching(Protocol):
    """An open segment whose entries are row ranges."""

    def stretches(self) -> tuple[Rows, NDArray[np.int64]]:
        """Return the first row of each range, and the number of offsets that it spans in its fragment, at least 1."""


def needs_reach(snapshot: Snapshot, kind: IndexKind, version: int) -> bool:
    """Return whether segments of a kind and layout version may list fragments whose rows they do not contain."""
    return snapshot.has_stable_row_ids and (kind.rows_by == "address" or (kind.rows_by == "version" and version > 0))


def reached(
    snapshot: Snapshot, metadata: IndexMetadata, kind: IndexKind, type_: pa.DataType, fragments: FragmentIds
) -> FragmentIds:
    """Return the listed fragments that a segment really covers.

    Args:
        snapshot: Version of a table with stable row ids.
        metadata: Metadata of a segment whose entries are addresses.
        kind: Kind of the index.
        type_: Storage type of the column.
        fragments: Ids of fragments that the segment lists and that exist in this version.

    Returns:
        Ids of the fragments, ascending. If the segment cannot be read, returns only the fragments without moved rows.
    """
    doubtful = difference_of(fragments, snapshot.derived("fragments as written", lambda: _as_written(snapshot)))
    if not len(doubtful):
        return fragments
    return difference_of(fragments, _not_reached(snapshot, metadata, kind, type_, doubtful))


def _as_written(snapshot: Snapshot) -> FragmentIds:
    """Return the ids of fragments whose row ids were new when they were written.

    This is certain if all earlier fragments still exist and have only smaller row ids. If a row was moved into a
    fragment, an earlier fragment also contains its row id, for a live or a deleted row.
    """
    greatest = -1
    ids: list[int] = []
    for number, fragment in enumerate(sorted(snapshot.fragments, key=lambda f: f.id)):
        if fragment.id != number:
            break
        try:
            sequence = snapshot.row_ids(fragment)
        except LanceDuckError:
            break
        segments = [s for s in sequence.segments if s.count] if sequence is not None else []
        if segments and min(s.low for s in segments) > greatest:
            ids.append(number)
        greatest = max([greatest, *(s.high for s in segments)])
    return np.array(ids, np.uint32)


def _not_reached(
    snapshot: Snapshot, metadata: IndexMetadata, kind: IndexKind, type_: pa.DataType, doubtful: FragmentIds
) -> FragmentIds:
    index = opened_segment(snapshot, metadata, kind, type_).index
    if not isinstance(index, Naming | Stretching):  # or a corrupt segment, which a search will report
        return doubtful
    named_rows = snapshot.shared(("named rows", metadata.uuid, metadata.base_id), _NamedRows)
    try:
        fragments = [snapshot.fragment(i) for i in doubtful.tolist()]
        sizes = [snapshot.physical_rows(f) for f in fragments]
        missing_rows = named_rows.missing(index, list(zip(doubtful.tolist(), sizes, strict=True)))
    except LanceDuckError:
        return doubtful
    is_missing = [not _is_deleted(snapshot, f, rows) for f, rows in zip(fragments, missing_rows, strict=True)]
    return doubtful[np.array(is_missing, np.bool_)]


def _is_deleted(snapshot: Snapshot, fragment: Fragment, rows: Offsets | None) -> bool:
    """Return whether the given rows of a fragment are all deleted. Returns False if `rows` is None, for all rows."""
    if rows is not None and not len(rows):
        return True
    if fragment.deletion_file is None or rows is None:
        return False
    try:
        vector = snapshot.deletion_vector(fragment)
    except LanceDuckError:  # the fragment is corrupt, not the segment
        return False
    return vector is not None and bool(vector.contains(rows).all())


class _NamedRows:
    """The rows that appear in a segment's entries. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._fragments: frozenset[int] | None = None
        self._missing: dict[tuple[int, int], Offsets] = {}

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return sum(rows.nbytes for rows in self._missing.values()) + 64 * len(self._fragments or ())

    def missing(self, index: Naming | Stretching, fragments: list[tuple[int, int]]) -> list[Offsets | None]:
        """Return the offsets of each fragment's rows without an entry, or None if none of its rows has an entry.

        Args:
            index: The segment.
            fragments: Id and physical row count of each fragment, in ascending order of ids.
        """
        with self._lock:
            if self._fragments is None or any(self._is_unknown(each) for each in fragments):
                self._count(index, fragments)
            return [self._missing.get(each) for each in fragments]

    def _is_unknown(self, fragment: tuple[int, int]) -> bool:
        return fragment not in self._missing and fragment[0] in (self._fragments or ())

    def _count(self, index: Naming | Stretching, fragments: list[tuple[int, int]]) -> None:
        ids, sizes = (np.array(column, np.int64) for column in zip(*fragments, strict=True))
        slots = Slots(ids, sizes)
        if isinstance(index, Stretching):
            is_named, reached = _of_stretches(slots, sizes, *index.stretches())
        else:
            is_named, reached = _of_names(slots, index.names())
        for each, start in zip(fragments, slots.starts.tolist(), strict=True):
            if each[0] in reached:
                self._missing[each] = np.flatnonzero(~is_named[start : start + each[1]]).astype(np.uint32)
        self._fragments = frozenset(reached)


def _of_names(slots: Slots, names: Iterable[Rows]) -> tuple[NDArray[np.bool_], set[int]]:
    """Return a mask of the rows with an entry, and the ids of all fragments with entries."""
    is_named = np.zeros(slots.total + 1, np.bool_)
    fragments: set[int] = set()
    for rows in names:
        place, within, _ = slots.find(rows)
        is_named[place[within]] = True
        fragments.update(distinct(rows >> _HIGH).tolist())
    return is_named, fragments


def _of_stretches(
    slots: Slots, sizes: NDArray[np.int64], first: Rows, length: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], set[int]]:
    """Return the results of `_of_names` for row ranges. Rows past the end of a fragment are skipped."""
    place, within, _ = slots.find(first)
    begin, length = place[within], length[within]
    ends = slots.starts + sizes
    end = np.minimum(begin + length, ends[np.searchsorted(ends, begin, side="right")])
    depth = np.zeros(slots.total + 1, np.int32)
    np.add.at(depth, begin, 1)
    np.add.at(depth, end, -1)
    return np.cumsum(depth) > 0, set(distinct(first >> _HIGH).tolist())
