"""Divides a scan into tasks, each for one thread. A task reads a range of rows, or rows that indexes chose."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, count, groupby, pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.limits import in_halves
from lance_duck.errors import LanceDuckError
from lance_duck.scan.costs import (
    FRAGMENTS_AT_ONCE,
    JOINED_ROWS,
    MORSEL_ROWS,
    RUN_ROWS,
    TASK_ROWS,
)
from lance_duck.scan.filters import Filter
from lance_duck.scan.plan import Extent, Morsel, ScanPlan, Sizer, morsels_of
from lance_duck.scan.projection import ROW_OFFSET
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader
from lance_duck.scan.read.joined_fragments import JoinedFragments, joinable_groups, may_join, shape_of
from lance_duck.scan.read.morsel import count_morsel, read_morsel
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path

if TYPE_CHECKING:
    from lance_duck.scan.indexes import selection
    from lance_duck.scan.read import selected_rows
else:
    selection = lazy.modules(globals(), "lance_duck.scan.indexes", "selection")
    selected_rows = lazy.modules(globals(), "lance_duck.scan.read", "selected_rows")


class Task(Protocol):
    """A task of a scan, for one thread."""

    @property
    def rows(self) -> int:
        """Number of rows that the task reads, before the filter."""

    def read(self) -> list[pa.RecordBatch]:
        """Return the non-empty batches of the task."""

    def count(self) -> int:
        """Return the number of live rows that pass the filter."""


class Readers:
    """Readers of the fragments of a plan. Each reader is created on first use.

    Attributes:
        is_remote: Whether a read takes a round trip.
    """

    def __init__(self, snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache) -> None:
        self.plan = plan
        self.is_remote = local_path(snapshot.uri) is None
        self.snapshot = snapshot
        self._columns = columns
        self._opened: dict[int, FragmentReader] = {}

    def at(self, index: int) -> FragmentReader:
        """Return the reader of the fragment at a plan position."""
        reader = self._opened.get(index)
        if reader is None:
            reader = FragmentReader(self.snapshot, self.plan.fragments[index], self._columns)
            self._opened[index] = reader
        return reader

    def count(self, index: int) -> int:
        """Return the row count of a fragment before the filter, without deleted rows unless the plan returns them."""
        reader = self.at(index)
        return reader.num_rows if self.plan.include_deleted else reader.num_live_rows

    def before(self, index: int) -> int:
        """Return the plan's row count before a fragment, or 0 if row offsets are not used."""
        numbered = ROW_OFFSET in self.plan.hidden or ROW_OFFSET in self.plan.hidden_in_filter
        return self._bounds[index] if numbered else 0

    def extents(self) -> Iterator[Extent]:
        """Yield the row ranges to scan. Without a filter, limit and offset are applied."""
        plan = self.plan
        skip, rest = (plan.offset, plan.limit) if plan.filter is None else (0, None)
        before = 0
        for index in range(len(plan.fragments)):
            if rest == 0:
                return
            reader = self.at(index)
            count = self.count(index)
            if skip < count:
                size = count - skip if rest is None else min(rest, count - skip)
                yield Extent(index, *self._range(reader, skip, skip + size, count), before)
                rest = None if rest is None else rest - size
            skip = max(0, skip - count)
            before += count

    @cached_property
    def _bounds(self) -> list[int]:
        return list(accumulate((self.count(i) for i in range(len(self.plan.fragments))), initial=0))

    def _range(self, reader: FragmentReader, start: int, stop: int, count: int) -> tuple[int, int]:
        """Return the physical range of the fragment's rows from number `start` to number `stop` - 1."""
        if start == 0 and stop == count:
            return 0, reader.num_rows
        deletions = None if self.plan.include_deleted else reader.deletions
        if deletions is None:
            return start, stop
        first, last = deletions.nth_live(np.array([start, stop - 1])).tolist()
        return first, last + 1


@dataclass(frozen=True, eq=False)
class _Range:
    plan: ScanPlan
    reader: FragmentReader
    morsel: Morsel

    @property
    def rows(self) -> int:
        return self.morsel.stop - self.morsel.start

    def read(self) -> list[pa.RecordBatch]:
        return in_halves(self._read, self.morsel.start, self.morsel.stop)

    def count(self) -> int:
        return sum(in_halves(self._count, self.morsel.start, self.morsel.stop))

    def _read(self, start: int, stop: int) -> list[pa.RecordBatch]:
        batch = read_morsel(self.plan, self.reader, replace(self.morsel, start=start, stop=stop))
        return [] if batch is None else [batch]

    def _count(self, start: int, stop: int) -> list[int]:
        return [count_morsel(self.plan, self.reader, replace(self.morsel, start=start, stop=stop))]


@dataclass(frozen=True, eq=False)
class _JoinedRanges:
    plan: ScanPlan
    readers: Readers
    extents: Sequence[Extent]

    @cached_property
    def rows(self) -> int:
        return sum(extent.stop for extent in self.extents)

    def read(self) -> list[pa.RecordBatch]:
        try:
            fragments = self._open()
            batch = read_morsel(self.plan, fragments, self._morsel)
        except LanceDuckError:  # reading the fragments one by one succeeds, or raises the error
            return [batch for task in self._alone() for batch in task.read()]
        if batch is None:
            return []
        if self.plan.filter is not None or self.plan.crosses_fragments:
            return [batch]
        ends = [*accumulate(fragments.live_rows)]
        return [batch.slice(start, stop - start) for start, stop in pairwise([0, *ends]) if start < stop]

    def count(self) -> int:
        try:
            return count_morsel(self.plan, self._open(), self._morsel)
        except LanceDuckError:
            return sum(task.count() for task in self._alone())

    @property
    def _morsel(self) -> Morsel:
        return Morsel(0, 0, self.rows, self.extents[0].row_offset)

    def _open(self) -> JoinedFragments:
        return JoinedFragments(self.readers.snapshot, [self.readers.at(extent.index) for extent in self.extents])

    def _alone(self) -> Iterator[Task]:
        for extent in self.extents:
            yield _Range(self.plan, self.readers.at(extent.index), extent)


@dataclass(frozen=True, eq=False)
class _SelectedRows:
    plan: ScanPlan
    shares: Sequence[selected_rows.Share]

    @property
    def rows(self) -> int:
        return sum(len(share.offsets) for share in self.shares)

    def read(self) -> list[pa.RecordBatch]:
        return selected_rows.read_shares(self.plan, self.shares)

    def count(self) -> int:
        return selected_rows.count_shares(self.plan, self.shares)


def cut_tasks(readers: Readers, sizer: Sizer, *, counting: bool = False) -> Iterator[Task]:
    """Yield the plan's tasks in row order, lazily. Task sizes adapt to the rows read so far."""
    choices = readers.plan.choices
    if choices is None:
        yield from _range_tasks(readers, readers.extents(), sizer)
    else:
        yield from _SelectionCutter(readers, choices, sizer, counting).tasks()


def _range_tasks(readers: Readers, extents: Iterator[Extent], sizer: Sizer) -> Iterator[Task]:
    """Yield tasks that read all rows of extents."""
    for group in _together(readers, extents):
        if len(group) > 1:
            yield _JoinedRanges(readers.plan, readers, group)
            continue
        for morsel in morsels_of(iter(group), sizer):
            yield _Range(readers.plan, readers.at(morsel.index), morsel)


def _together(readers: Readers, extents: Iterator[Extent]) -> Iterator[Sequence[Extent]]:
    """Yield extents in groups: see `joinable_groups`."""
    if len(readers.plan.fragments) == 1:
        yield from ([extent] for extent in extents)
        return
    find, numbers = shape_of(readers.snapshot), count()
    joins = cache(lambda: may_join(readers.plan))  # decided at the first small fragment: many tables do not have one

    def shape(extent: Extent) -> Hashable | None:
        gaps = extent.index - next(numbers)  # equal for adjacent fragments
        is_whole = (extent.start, extent.stop) == (0, readers.at(extent.index).num_rows)
        if not is_whole or extent.stop > JOINED_ROWS or not joins():
            return None
        found = find(readers.plan.fragments[extent.index])
        return None if found is None else (found, gaps)

    yield from joinable_groups(extents, shape, lambda extent: extent.stop, first=1)


class _SelectionCutter:
    """Cuts a plan with rows that indexes chose into tasks."""

    def __init__(self, readers: Readers, choices: selection.Choices, sizer: Sizer, counting: bool) -> None:
        self._readers = readers
        self._plan = readers.plan
        self._choices = choices
        self._sizer = sizer
        self._counting = counting
        self._held: list[selected_rows.Share] = []
        self._held_filter: Filter | None = None

    def tasks(self) -> Iterator[Task]:
        for is_open, touched in groupby(self._touched(), lambda each: self._choices.is_open(each[1])):
            if is_open:
                yield from self._flush()
                yield from _range_tasks(self._readers, (self._whole(index) for index, _ in touched), self._sizer)
                continue
            for index, fragment_id in touched:
                yield from self._closed(index, fragment_id)
        yield from self._flush()

    def _whole(self, index: int) -> Extent:
        return Extent(index, 0, self._readers.at(index).num_rows, self._readers.before(index))

    def _touched(self) -> Iterator[tuple[int, int]]:
        """Yield positions and ids of the fragments that have rows to read, in order."""
        hits = self._choices.rows.parts
        ids = self._plan.ids
        if len(hits) * 4 < len(ids) and self._plan.place_of is not None and self._choices.closes(len(ids)):
            for place in sorted(self._plan.place_of[i] for i in hits):
                yield place, ids[place]
            return
        for place, fragment_id in enumerate(ids):
            if fragment_id in hits or self._choices.is_open(fragment_id):
                yield place, fragment_id

    def _closed(self, index: int, fragment_id: int) -> Iterator[Task]:
        filter_ = self._choices.residual(fragment_id)
        offsets = self._choices.offsets(fragment_id)
        reader = self._readers.at(index)
        plan = self._plan.with_filter(filter_)
        if len(offsets) >= self._task_rows(filter_):
            breaks = np.flatnonzero(np.diff(offsets) != 1)
            if (len(breaks) + 1) * RUN_ROWS <= len(offsets):
                yield from self._flush()
                edges = [0, *(breaks + 1).tolist(), len(offsets)]
                runs = [(int(offsets[a]), int(offsets[b - 1]) + 1) for a, b in pairwise(edges)]
                yield from self._ranges(plan, index, runs)
                return
            if filter_ is not None and 2 * len(offsets) > reader.num_rows:
                yield from self._flush()
                yield from self._ranges(self._plan, index, [(0, reader.num_rows)])
                return
        yield from self._pieces(plan, filter_, selected_rows.Share(reader, offsets, self._readers.before(index)))

    def _ranges(self, plan: ScanPlan, index: int, ranges: Iterable[tuple[int, int]]) -> Iterator[Task]:
        before = self._readers.before(index)
        extents = (Extent(index, start, stop, before) for start, stop in ranges)
        for morsel in morsels_of(extents, self._sizer):
            yield _Range(plan, self._readers.at(index), morsel)

    def _pieces(self, plan: ScanPlan, filter_: Filter | None, share: selected_rows.Share) -> Iterator[Task]:
        """Yield tasks of many rows. Small shares wait until they can be read with shares of other fragments."""
        if filter_ is not self._held_filter:
            yield from self._flush()
        most = self._task_rows(filter_)
        if len(share.offsets) < most:
            self._held.append(share)
            self._held_filter = filter_
            if sum(len(s.offsets) for s in self._held) >= most or len(self._held) >= FRAGMENTS_AT_ONCE:
                yield from self._flush()
            return
        yield from self._flush()
        start, rows = 0, len(share.offsets)
        while start < rows:
            step = self._sizer.take()
            stop = rows if rows - start <= step + step // 4 else start + step
            yield self._task(plan, [_cut(share, share.offsets[start:stop])])
            start = stop

    def _task_rows(self, filter_: Filter | None) -> int:
        """Return the number of rows per task. It is larger if rows are counted without reading them."""
        return MORSEL_ROWS if self._counting and filter_ is None else TASK_ROWS

    def _flush(self) -> Iterator[Task]:
        if self._held:
            yield self._task(self._plan.with_filter(self._held_filter), self._held)
            self._held = []

    def _task(self, plan: ScanPlan, shares: Sequence[selected_rows.Share]) -> Task:
        return _SelectedRows(plan, shares)


def _cut(share: selected_rows.Share, offsets: NDArray[np.int64]) -> selected_rows.Share:
    return selected_rows.Share(share.reader, offsets, share.row_offset)
