"""Sorts a stream of rows within a memory limit.

rows → runs: sorted parts of the stream, in temporary files → rows in order, merged from the beginnings of all runs

Rows with equal keys keep their order.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.encoding.arrow.gather import as_batches, take_rows
from lance_duck.errors import StoreError, UnsupportedError
from lance_duck.file.write.contract import num_bytes
from lance_duck.maintenance.costs import RUN_BATCH_BYTES
from lance_duck.scan.options import ColumnOrdering, ScanOptions
from lance_duck.scan.sort import sort_order
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.store import delete_temporary
from lance_duck.wire.column_path import split_path
from lance_duck.wire.schema import Schema

_RUN_PARTS: Final = 3
"""A run takes the memory of its rows, of their copy in order, and of the keys."""
_MERGE_PARTS: Final = 4
"""The merge holds the beginnings of the runs, new batches, and the rows in order."""


@dataclass(frozen=True)
class SortKeys:
    """The columns that order rows.

    Attributes:
        orderings: Directions.
        paths: Names of each column and its struct fields.
    """

    orderings: Sequence[ColumnOrdering]
    paths: Sequence[Sequence[str]]

    @classmethod
    def of(cls, schema: Schema, orderings: Sequence[ColumnOrdering]) -> SortKeys:
        """Find the columns.

        Raises:
            InvalidInputError: A column does not exist.
            UnsupportedError: Values of a column cannot be ordered.
        """
        paths = []
        for each in orderings:
            name = each.column_name
            column = schema.by_path(name)
            if column.is_json or column.blob_version or pa.types.is_nested(column.storage_type):
                raise UnsupportedError(
                    "rows cannot be sorted by this column", where="order_by", found=f"{name}: {column.arrow_type}"
                )
            sort_order(pa.table([pa.array([], column.storage_type)], ["key"]), [each])
            paths.append([name] if name in schema.names else split_path(name))
        return cls(orderings, paths)

    def columns(self, rows: pa.Table) -> pa.Table:
        """Return one column for each key."""
        keys = []
        for name, *fields in self.paths:
            key = rows.column(name)
            for each in fields:
                key = pc.struct_field(key, each)
            keys.append(key)
        return pa.table(keys, [str(i) for i in range(len(keys))])

    def order(self, rows: pa.Table) -> NDArray[np.int64]:
        """Return the positions of the rows in order."""
        return sort_order(self.columns(rows), self.orderings)


def are_sorted(snapshot: Snapshot, fragments: Sequence[int], keys: SortKeys) -> bool:
    """Return whether the live rows of fragments are in order. Reads only the keys, until two rows are not in order."""
    names = list(dict.fromkeys(each.column_name for each in keys.orderings))
    table = TableScan(snapshot)
    options = ScanOptions(columns=names, fragments=fragments)
    last: pa.Table | None = None
    with table.reader(table.plan(options), options) as reader:
        for batch in reader:
            columns = [batch.column(names.index(each.column_name)) for each in keys.orderings]
            rows = pa.table(columns, [str(i) for i in range(len(columns))])
            seen = rows if last is None else pa.concat_tables([last, rows])
            order = sort_order(seen, keys.orderings)
            if not bool(np.all(order[1:] > order[:-1])):
                return False
            last = rows.slice(max(0, rows.num_rows - 1)) if rows.num_rows else last
    return True


def sorted_batches(batches: Iterable[pa.RecordBatch], keys: SortKeys, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield rows in order.

    Args:
        batches: The rows.
        keys: The columns that order them.
        most_bytes: Approximate maximum size of the rows in memory, in bytes.

    Raises:
        StoreError: A temporary file cannot be written.
    """
    with ExitStack() as files:
        runs: list[_Run] = []
        for rows, is_last in _parts(batches, most_bytes // _RUN_PARTS):
            ordered = take_rows(rows, keys.order(rows))
            if is_last and not runs:
                yield from as_batches(ordered)
                return
            runs.append(_Run.of(ordered, files))
            del ordered, rows
        if runs:
            yield from _merged(runs, keys, most_bytes // (_MERGE_PARTS * len(runs)))


def _parts(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[tuple[pa.Table, bool]]:
    """Yield consecutive rows of up to a size, and whether they are the last ones."""
    pending: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if pending and size + num_bytes(batch) > most_bytes:
            yield pa.Table.from_batches(pending), False
            pending, size = [], 0
        pending.append(batch)
        size += num_bytes(batch)
    if pending:
        yield pa.Table.from_batches(pending), True


@dataclass
class _Run:
    """A sorted part of the rows in a temporary file, and its first rows that are not merged yet.

    Attributes:
        reader: Reads the rest.
        rows: The first rows.
        has_more: Whether the file has more rows.
    """

    reader: pa.RecordBatchReader
    rows: pa.Table
    has_more: bool = field(default=True)

    @classmethod
    def of(cls, rows: pa.Table, files: ExitStack) -> _Run:
        """Write a run. The file is deleted when `files` closes."""
        step = max(1, RUN_BATCH_BYTES * rows.num_rows // max(1, _size(rows)))
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        try:
            handle, path = tempfile.mkstemp(prefix="lance_duck-sort-", suffix=".arrows")
            os.close(handle)
            files.callback(delete_temporary, path)
            with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, rows.schema, options=options) as stream:
                for batch in as_batches(rows):
                    for start in range(0, batch.num_rows, step):
                        stream.write_batch(batch.slice(start, step))
            reader = pa.ipc.open_stream(files.enter_context(pa.OSFile(path)))
        except OSError as error:
            raise StoreError(
                "rows to sort cannot be written to a temporary file",
                where=tempfile.gettempdir(),
                found=error,
                remedy="free disk space, set TMPDIR to another disk, or raise memory_limit",
            ) from error
        return cls(reader, rows.schema.empty_table())

    def fill(self, most_bytes: int) -> None:
        """Read rows until half of the size is exceeded. At least one row is there, unless the run ends."""
        parts, size = [self.rows], _size(self.rows)
        while self.has_more and size <= most_bytes // 2:
            try:
                batch = self.reader.read_next_batch()
            except StopIteration:
                self.has_more = False
                break
            parts.append(pa.Table.from_batches([batch]))
            size += num_bytes(batch)
        self.rows = pa.concat_tables(parts) if len(parts) > 1 else self.rows


def _merged(runs: list[_Run], keys: SortKeys, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of runs in order. Each run takes about `most_bytes` of memory.

    A row can be yielded if it does not come after the last known row of any run that has more rows.
    """
    while True:
        for run in runs:
            run.fill(most_bytes)
        runs = [run for run in runs if run.rows.num_rows]
        if not runs:
            return
        first, last = _ranks(runs, keys)
        open_runs = [place for place, run in enumerate(runs) if run.has_more]
        limiting = min(open_runs, key=lambda place: last[place], default=None)
        chosen = [place for place in range(len(runs)) if limiting is None or first[place] <= last[limiting]]
        rows = pa.concat_tables([runs[place].rows for place in chosen])
        ends = np.cumsum([runs[place].rows.num_rows for place in chosen])
        order = keys.order(rows)
        if limiting is not None:
            boundary = int(ends[chosen.index(limiting)]) - 1
            order = order[: int(np.flatnonzero(order == boundary)[0]) + 1]
        counts = np.bincount(np.searchsorted(ends, order, side="right"), minlength=len(chosen))
        for place, count in zip(chosen, counts.tolist(), strict=True):
            runs[place].rows = runs[place].rows.slice(count)
        yield from as_batches(take_rows(rows, order))


def _size(rows: pa.Table) -> int:
    return sum(map(num_bytes, rows.to_batches()))


def _ranks(runs: Sequence[_Run], keys: SortKeys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranks of the first and of the last known row of each run among all these rows."""
    edges = [run.rows.slice(at, 1) for run in runs for at in (0, run.rows.num_rows - 1)]
    order = keys.order(pa.concat_tables(edges))
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[0::2], ranks[1::2]
