"""Carry out a plan: threads, batches in order, an early end."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pyarrow as pa

from lance_duck.scan.fragment_reader import ColumnCache
from lance_duck.scan.ordered import map_ordered
from lance_duck.scan.plan import ScanPlan, Sizer
from lance_duck.scan.tasks import Readers, Task, cut_tasks
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
    """Number of rows that the plan gives; no data file is opened without a filter, or where indexes say all."""
    readers = Readers(snapshot, plan, columns or ColumnCache())
    if plan.filter is None:
        total = sum(readers.count(i) for i in range(len(plan.fragments)))
    else:
        tasks = cut_tasks(readers, Sizer(plan.filter_width or 1), counting=True)
        total = sum(map_ordered(lambda task: task.count(), tasks, workers=workers))
    return plan.cut_count(total)


def has_rows(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None) -> bool:
    """Whether the plan gives any row; reads no further than the first."""
    readers = Readers(snapshot, plan, columns or ColumnCache())
    return any(task.count() for task in cut_tasks(readers, Sizer(plan.filter_width or 1), counting=True))


def _read(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache, workers: int | None) -> Batches:
    """Batches before limit and offset are applied to a filtered scan."""
    readers = Readers(snapshot, plan, columns)
    sizer = Sizer(plan.width, plan.batch_rows, plan.batch_bytes, plan.filter_width)

    def work(task: Task) -> tuple[int, list[pa.RecordBatch]]:
        return task.rows, task.read()

    for rows, batches in map_ordered(work, cut_tasks(readers, sizer), workers=workers):
        sizer.observe(rows, sum(batch.num_rows for batch in batches), sum(batch.nbytes for batch in batches))
        for batch in batches:
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
