"""Carry out a plan: threads, batches in order, an early end."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa

from lance_duck.scan.fragment_reader import ColumnCache, FragmentReader
from lance_duck.scan.morsel import count_morsel, read_morsel
from lance_duck.scan.ordered import map_ordered
from lance_duck.scan.plan import Extent, Morsel, ScanPlan, Sizer, cut
from lance_duck.snapshot import Snapshot

Batches = Generator[pa.RecordBatch, None, None]


def open_reader(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> pa.RecordBatchReader:
    """Stream the result of a plan. Nothing is read before the first batch is asked for.

    Args:
        snapshot: The version of the table.
        plan: What to scan.
        columns: Column readers to use again.
        workers: Threads; one for each core unless given.

    Raises:
        LanceDuckError: From the reader's methods, when a file is bad or the filter fails on a value.
    """
    return pa.RecordBatchReader.from_batches(plan.projection.schema, scan_batches(snapshot, plan, columns, workers))


def scan_batches(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> Batches:
    """Yield the batches of a plan, none of them empty. Closing the generator ends the scan."""
    batches = _trim(plan, _read(snapshot, plan, columns or ColumnCache(), workers))
    return _regroup(batches, plan.batch_rows) if plan.strict_batches and plan.batch_rows else batches


def count_rows(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> int:
    """Number of rows that the plan gives; without a filter no data file is opened."""
    readers = _Readers(snapshot, plan, columns or ColumnCache())
    if plan.filter is None:
        total = sum(readers.count(i) for i in range(len(plan.fragments)))
    else:
        morsels = cut(readers.extents(), Sizer(plan.filter_width or 1))
        work = map_ordered(lambda morsel: count_morsel(plan, readers.reader(morsel), morsel), morsels, workers=workers)
        total = sum(work)
    total = max(0, total - plan.offset)
    return total if plan.limit is None else min(total, plan.limit)


def has_rows(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None) -> bool:
    """Whether the plan gives any row; reads no further than the first."""
    readers = _Readers(snapshot, plan, columns or ColumnCache())
    morsels = cut(readers.extents(), Sizer(plan.filter_width or 1))
    return any(count_morsel(plan, readers.reader(morsel), morsel) for morsel in morsels)


class _Readers:
    """The fragments of a plan, opened when they are come to."""

    def __init__(self, snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._columns = columns
        self._opened: dict[int, FragmentReader] = {}

    def reader(self, extent: Extent) -> FragmentReader:
        """The fragment of an extent."""
        return self._at(extent.index)

    def count(self, index: int) -> int:
        """Rows of a fragment that the plan sees, before its filter."""
        reader = self._at(index)
        return reader.num_rows if self._plan.include_deleted else reader.num_live_rows

    def extents(self) -> Iterator[Extent]:
        """Row ranges to go over: all rows, or with limit and offset and no filter those that they leave."""
        plan = self._plan
        skip, left = (plan.offset, plan.limit) if plan.filter is None else (0, None)
        before = 0
        for index in range(len(plan.fragments)):
            if left == 0:
                return
            reader = self._at(index)
            count = self.count(index)
            if skip < count:
                taken = count - skip if left is None else min(left, count - skip)
                yield Extent(index, *self._range(reader, skip, skip + taken, count), before)
                left = None if left is None else left - taken
            skip = max(0, skip - count)
            before += count

    def _range(self, reader: FragmentReader, start: int, stop: int, count: int) -> tuple[int, int]:
        """Physical rows from the start-th to before the stop-th that the plan sees."""
        if start == 0 and stop == count:
            return 0, reader.num_rows
        deletions = None if self._plan.include_deleted else reader.deletions
        if deletions is None:
            return start, stop
        first, last = deletions.nth_live(np.array([start, stop - 1])).tolist()
        return first, last + 1

    def _at(self, index: int) -> FragmentReader:
        found = self._opened.get(index)
        if found is None:
            found = FragmentReader(self._snapshot, self._plan.fragments[index], self._columns)
            self._opened[index] = found
        return found


def _read(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache, workers: int | None) -> Batches:
    """Batches before limit and offset are applied to a filtered scan."""
    readers = _Readers(snapshot, plan, columns)
    sizer = Sizer(plan.width, plan.batch_rows, plan.batch_bytes, plan.filter_width)

    def work(morsel: Morsel) -> tuple[int, pa.RecordBatch | None]:
        return morsel.stop - morsel.start, read_morsel(plan, readers.reader(morsel), morsel)

    for rows, batch in map_ordered(work, cut(readers.extents(), sizer), workers=workers):
        if batch is None:
            sizer.observe(rows, 0, 0)
        else:
            sizer.observe(rows, batch.num_rows, batch.nbytes)
            yield from _slices(batch, plan.batch_rows)


def _trim(plan: ScanPlan, batches: Batches) -> Batches:
    if plan.filter is None or (not plan.offset and plan.limit is None):
        yield from batches
        return
    skip, left = plan.offset, plan.limit
    try:
        if left == 0:
            return
        for batch in batches:
            rest = batch.slice(skip, left)
            skip = max(0, skip - batch.num_rows)
            if rest.num_rows:
                left = None if left is None else left - rest.num_rows
                yield rest
            if left == 0:
                return
    finally:
        batches.close()


def _slices(batch: pa.RecordBatch, rows: int | None) -> Iterator[pa.RecordBatch]:
    if rows is None or batch.num_rows <= rows:
        yield batch
        return
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _regroup(batches: Batches, rows: int) -> Batches:
    """Batches of exactly `rows` rows, but for the last."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        while count >= rows:
            whole = held[0] if len(held) == 1 else pa.concat_batches(held)
            yield whole.slice(0, rows)
            count -= rows
            held = [whole.slice(rows)] if count else []
    if count:
        yield held[0] if len(held) == 1 else pa.concat_batches(held)
