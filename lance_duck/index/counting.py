"""Counting of the rows that satisfy a query, by an index alone."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from lance_duck.index.catalog import ColumnIndex, Segment
from lance_duck.index.kind import ScalarIndex
from lance_duck.index.query import Query
from lance_duck.index.reuse import reuse_entry
from lance_duck.index.search import ask
from lance_duck.snapshot import Snapshot


@runtime_checkable
class Counting(Protocol):
    """An open segment whose entries can be counted faster than read.

    Attributes:
        num_entries: Number of all entries, those of rows included that it does not answer for any more.
    """

    @property
    def num_entries(self) -> int: ...  # noqa: D102

    def count(self, query: Query) -> int:
        """Return the number of entries that satisfy a query that the kind `answers`."""


def count(snapshot: Snapshot, index: ColumnIndex, query: Query) -> int | None:
    """Return the number of live rows that satisfy a query; None if rows must be read.

    A segment has an entry for each row that it covers. If it has as many entries as there are live rows, it has no
    others.
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
    return total


def _counted(snapshot: Snapshot, segment: Segment, query: Query) -> int | None:
    living = snapshot.derived(("living rows", segment.uuid), lambda: _living(snapshot, segment))

    def counted(index: ScalarIndex) -> int | None:
        return index.count(query) if isinstance(index, Counting) and index.num_entries == living else None

    return ask(snapshot, segment, counted)


def _living(snapshot: Snapshot, segment: Segment) -> int:
    return sum(snapshot.num_rows(snapshot.fragment(int(fragment_id))) for fragment_id in segment.fragments)
