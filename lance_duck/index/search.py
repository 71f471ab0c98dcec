"""Searches of segments. A segment is opened once, restricted to its fragments, and skipped if it is corrupt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from lance_duck.errors import LanceDuckError, warn_of_index
from lance_duck.forks import Lock
from lance_duck.index.catalog import Segment
from lance_duck.index.coverage_check import check_complete, is_doubtful
from lance_duck.index.kind import Answer, ScalarIndex
from lance_duck.index.left_out import LeavingOut, rows_left_out
from lance_duck.index.names import covered_rows
from lance_duck.index.opened import OpenedSegment, broken, opened_segment
from lance_duck.index.query import Overlaps, Query
from lance_duck.index.reuse import reuse_entry
from lance_duck.interrupts import Stopped
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot

_T = TypeVar("_T")


def search(snapshot: Snapshot, segment: Segment, query: Query) -> Answer | None:
    """Search a segment.

    Args:
        snapshot: Version of the table.
        segment: Segment of the catalog of this version.
        query: Query that the segment's kind supports on a column of its type.

    Returns:
        Row addresses in `segment.fragments`, possibly including deleted rows. None if the segment is corrupt: the
        caller then scans the covered rows, and an IndexWarning is issued once per segment and process.
    """
    return ask(snapshot, segment, lambda index: answer(snapshot, segment, index, query))


def answer(snapshot: Snapshot, segment: Segment, index: ScalarIndex, query: Query) -> Answer:
    """Search an open segment, like `search`.

    Raises:
        LanceDuckError: The segment is corrupt.
    """
    result = index.search(query)
    maybe = covered_rows(snapshot, segment, result.maybe)
    if isinstance(query, Overlaps) and isinstance(index, LeavingOut):
        return Answer.at_most(maybe | rows_left_out(snapshot, segment, index))
    if result.is_exact:
        return Answer.exactly(maybe)
    return Answer(covered_rows(snapshot, segment, result.sure) if result.sure else RowSet({}), maybe)


def estimate(snapshot: Snapshot, segment: Segment, query: Query) -> int | None:
    """Return an upper bound of the result's row count, without reading rows.

    Returns:
        The bound, or None if it is unknown, or if the segment is corrupt.
    """
    return ask(snapshot, segment, lambda index: index.estimate(query))


def ask(snapshot: Snapshot, segment: Segment, do: Callable[[Any], _T]) -> _T | None:
    """Call a function with an open segment. Returns None if the segment is corrupt. See `search`."""
    opened_index = held_segment(snapshot, segment)
    index = opened_index.index
    if not isinstance(index, LanceDuckError):
        try:
            return do(index)
        except Stopped:
            raise
        except Exception as error:
            index = broken(segment.metadata, error)
            if not isinstance(error, MemoryError):  # says nothing about the index
                opened_index.index = index
    if _WARNED.add(segment.uuid):
        warn_of_index(f"{segment} cannot be used, so its rows are scanned: {index}")
    return None


def wrong_with(snapshot: Snapshot, segment: Segment) -> LanceDuckError | None:
    """Return the known error that makes a segment unusable. Returns None if no error is known."""
    result = held_segment(snapshot, segment).index
    return result if isinstance(result, LanceDuckError) else None


def open_index(snapshot: Snapshot, segment: Segment) -> ScalarIndex:
    """Return an open segment. Versions of a table share it if one was loaded from the other.

    Raises:
        LanceDuckError: The segment is corrupt.
    """
    opened_index = held_segment(snapshot, segment)
    if isinstance(opened_index.index, LanceDuckError):
        raise opened_index.index
    index: ScalarIndex = opened_index.index
    return index


class _WarnedSegments:
    """The segments for which a warning was issued."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._uuids: set[UUID] = set()

    def add(self, uuid: UUID) -> bool:
        """Add a segment. Returns whether it is new."""
        with self._lock:
            is_new = uuid not in self._uuids
            self._uuids.add(uuid)
            return is_new


_WARNED = _WarnedSegments()


def held_segment(snapshot: Snapshot, segment: Segment) -> OpenedSegment:
    """Return the result of opening a segment. A later search may replace its index by an error."""

    def check() -> OpenedSegment:
        try:
            if not isinstance(opened_index.index, LanceDuckError) and is_doubtful(snapshot, segment):
                check_complete(snapshot, segment, opened_index.index)
        except Stopped:
            raise
        except Exception as error:
            return OpenedSegment(broken(segment.metadata, error))
        return opened_index

    opened_index = opened_segment(snapshot, segment.metadata, segment.kind, segment.type)
    if reuse_entry(snapshot.indices) is None:
        return opened_index
    return snapshot.derived(("complete segment", segment.uuid), check)
