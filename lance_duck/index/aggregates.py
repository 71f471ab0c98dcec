"""Aggregates computed from an index alone: the row count of a query, and the minimum and maximum of a column."""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

import pyarrow as pa

from lance_duck.arrow.join import joined_arrays
from lance_duck.index.catalog import ColumnIndex, Segment
from lance_duck.index.kind import Lives, ScalarIndex
from lance_duck.index.names import Follower
from lance_duck.index.query import Query
from lance_duck.index.reuse import reuse_entry
from lance_duck.index.search import ask
from lance_duck.snapshot import Snapshot
from lance_duck.telemetry.metrics import INDEX_USES


@runtime_checkable
class Counting(Protocol):
    """An open segment that can count its entries without reading all of them.

    Attributes:
        num_entries: Number of entries, including rows that the segment no longer covers.
    """

    @property
    def num_entries(self) -> int: ...  # noqa: D102

    def count(self, query: Query) -> int:
        """Return the number of entries that satisfy a supported query."""


@runtime_checkable
class Ordered(Protocol):
    """An open segment whose entries are sorted by value."""

    def end_value(self, lives: Lives, *, greatest: bool) -> pa.Array | None:
        """Return the minimum or maximum of live rows.

        Returns:
            One value, or an empty array if all live rows are null. None if the search finds only deleted rows and stops
            before the last entry.
        """


def count(snapshot: Snapshot, index: ColumnIndex, query: Query) -> int | None:
    """Return the number of live rows that satisfy a query. Returns None if rows must be read.

    A segment has an entry for each row that it covers. If the entry count equals the live row count, all entries are
    live.
    """
    if sum(len(segment.fragments) for segment in index.segments) < len(snapshot.fragments):
        return None
    if reuse_entry(snapshot.indices) is not None:
        return None
    total = 0
    for segment in index.segments:
        counted = _counted(snapshot, segment, query)
        if counted is None:
            return None
        total += counted
    _note_use(index)
    return total


def extremes(snapshot: Snapshot, index: ColumnIndex) -> pa.Array | None:
    """Return values of live rows in `index.fragments`, including the minimum and maximum.

    Returns:
        Two values for each segment, or no values for a segment of nulls. None if a segment cannot return its minimum
        and maximum.
    """
    ends: list[pa.Array] = []
    for segment in index.segments:
        pair = ask(snapshot, segment, partial(_ends, snapshot, segment))
        if pair is None:
            return None
        ends += pair
    _note_use(index)
    return joined_arrays(ends, index.segments[0].type)


def _note_use(index: ColumnIndex) -> None:
    if index.kind is not None:
        INDEX_USES.add(index.kind.name)


def _counted(snapshot: Snapshot, segment: Segment, query: Query) -> int | None:
    living = snapshot.derived(("live rows", segment.uuid), lambda: _living(snapshot, segment))

    def counted(index: ScalarIndex) -> int | None:
        return index.count(query) if isinstance(index, Counting) and index.num_entries == living else None

    return ask(snapshot, segment, counted)


def _living(snapshot: Snapshot, segment: Segment) -> int:
    return sum(snapshot.num_rows(snapshot.fragment(int(fragment_id))) for fragment_id in segment.fragments)


def _ends(snapshot: Snapshot, segment: Segment, opened: object) -> list[pa.Array] | None:
    if not isinstance(opened, Ordered):
        return None
    follower = Follower(snapshot, segment)
    pair = [opened.end_value(lambda names: follower.follow(names)[1], greatest=greatest) for greatest in (False, True)]
    return None if pair[0] is None or pair[1] is None else pair
