"""Executes a plan in threads, yields its batches in order, and stops early if the caller does."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_duck import lazy
from lance_duck.errors import UnsupportedError
from lance_duck.scan.costs import FRAGMENTS_AT_ONCE, MORSEL_ROWS, TASK_ROWS
from lance_duck.scan.plan import ScanPlan, Sizer
from lance_duck.scan.projection import ROW_OFFSET
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader
from lance_duck.scan.read.pace import pace_of
from lance_duck.scan.read.small_batches import Batches, concatenated, join_batches, slices
from lance_duck.scan.read.tasks import Readers, Task, cut_tasks
from lance_duck.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_duck.scan.read import selected_rows
else:
    selected_rows = lazy.modules(globals(), "lance_duck.scan.read", "selected_rows")

Pieces = Generator[list[pa.RecordBatch], None, None]


def open_reader(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> pa.RecordBatchReader:
    """Stream the result of a plan. Nothing is read before the first batch is requested.

    Args:
        snapshot: The version of the table.
        plan: The plan.
        columns: Cache of column readers.
        workers: Thread count. None means one per core.

    Raises:
        LanceDuckError: Raised by the returned reader, if a file is corrupt or the filter fails on a value.
    """
    return pa.RecordBatchReader.from_batches(plan.projection.schema, scan_batches(snapshot, plan, columns, workers))


def scan_batches(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> Batches:
    """Yield the non-empty batches of a plan. Closing the generator ends the scan."""
    pieces = _read(snapshot, plan, columns or ColumnCache(), workers)
    if plan.filter is not None and (plan.offset or plan.limit is not None):
        pieces = _trim(plan, pieces)
    if plan.strict_batches and plan.batch_rows:
        return _regroup(pieces, plan.batch_rows)
    if plan.filter is not None or plan.crosses_fragments:
        return join_batches(pieces, plan.batch_rows, plan.batch_bytes)
    return _as_read(pieces, plan.batch_rows)


def read_chosen(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache) -> list[pa.RecordBatch] | None:
    """Read the rows of a plan directly if indexes chose few rows, which fit in one task.

    A lookup by key (`benchmarks/indexes.py`) then does not spend time on cutting tasks and joining their batches.

    Returns:
        The batches that `scan_batches` yields, or None if the plan needs `scan_batches`.
    """
    choices = plan.choices
    if choices is None or plan.limit is not None or plan.offset or plan.batch_rows is not None:
        return None
    if not choices.closes(len(plan.fragment_ids)) or ROW_OFFSET in plan.hidden or plan.place_of is None:
        return None
    parts = choices.rows.parts
    if len(parts) > FRAGMENTS_AT_ONCE or len(choices.rows) >= TASK_ROWS:
        return None
    if not parts:
        return []
    places = sorted((plan.place_of[fragment_id], fragment_id) for fragment_id in parts)
    filter_, *others = [choices.residual(fragment_id) for _, fragment_id in places]
    if any(other is not filter_ for other in others):
        return None
    task_plan = plan.with_filter(filter_)
    if ROW_OFFSET in task_plan.hidden_in_filter:
        return None
    shares = [
        selected_rows.Share(FragmentReader(snapshot, plan.fragments[place], columns), choices.offsets(fragment_id))
        for place, fragment_id in places
    ]
    return selected_rows.read_shares(task_plan, shares)


def count_rows(
    snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None, workers: int | None = None
) -> int:
    """Count the rows of a plan. Data files are opened only for filters that indexes do not cover."""
    readers = Readers(snapshot, plan, columns or ColumnCache())
    if plan.filter is None:
        total = sum(readers.count(i) for i in range(len(plan.fragments)))
    else:
        pace = pace_of(readers, plan.first_reads, workers)
        tasks = cut_tasks(readers, pace.sizer(plan.filter_width or 1), counting=True)
        total = sum(pace.map(lambda task: task.count(), tasks))
    return plan.cut_count(total)


def has_rows(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache | None = None) -> bool:
    """Return whether a plan returns any rows. Reading stops at the first row."""
    readers = Readers(snapshot, plan, columns or ColumnCache())
    return any(task.count() for task in cut_tasks(readers, Sizer(plan.filter_width or 1), counting=True))


def _read(snapshot: Snapshot, plan: ScanPlan, columns: ColumnCache, workers: int | None) -> Pieces:
    """Yield the batches of each task, before limit and offset are applied to a filtered scan."""
    readers = Readers(snapshot, plan, columns)
    pace = pace_of(readers, (*plan.first_reads, *plan.later_reads), workers)
    sizer = pace.sizer(plan.width, plan.batch_rows, plan.batch_bytes, plan.filter_width)

    def work(task: Task) -> tuple[int, list[pa.RecordBatch]]:
        return task.rows, task.read()

    for rows, batches in pace.map(work, cut_tasks(readers, sizer)):
        sizer.observe(rows, batches)
        yield batches


def _trim(plan: ScanPlan, pieces: Pieces) -> Pieces:
    """Apply limit and offset to the rows of a filtered scan."""
    skip, remaining = plan.offset, plan.limit
    try:
        if remaining == 0:
            return
        for batches in pieces:
            rest = []
            for batch in batches:
                part = batch.slice(skip, remaining)
                skip = max(0, skip - batch.num_rows)
                if part.num_rows:
                    remaining = None if remaining is None else remaining - part.num_rows
                    rest.append(part)
            yield rest
            if remaining == 0:
                return
    finally:
        pieces.close()


def _as_read(pieces: Pieces, rows: int | None) -> Batches:
    for batches in pieces:
        for batch in batches:
            yield from slices(batch, rows or MORSEL_ROWS)


def _regroup(pieces: Pieces, rows: int) -> Batches:
    """Yield batches of exactly `rows` rows. The last batch may have fewer rows.

    Raises:
        UnsupportedError: One array cannot hold a column of a batch.
    """
    waiting: list[pa.RecordBatch] = []
    missing = rows
    for batch in _as_read(pieces, None):
        start = 0
        while batch.num_rows - start >= missing:
            yield _one([*waiting, batch.slice(start, missing)])
            start, missing, waiting = start + missing, rows, []
        if start < batch.num_rows:
            waiting.append(batch.slice(start))
            missing -= batch.num_rows - start
    if waiting:
        yield _one(waiting)


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    joined = concatenated(batches)
    if len(joined) > 1:
        raise UnsupportedError(
            "a column of batch_size rows does not fit one Arrow array",
            where="strict_batch_size",
            expected="at most 2 GiB of strings, and dictionaries within their index type",
            remedy="lower batch_size, or leave out strict_batch_size",
        )
    return joined[0]
