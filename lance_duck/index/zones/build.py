"""Builds zones from rows in table order, with bounds or with Bloom filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from lance_duck.arrow.distinct import distinct
from lance_duck.encoding.bloom import Hashes, insert, new_filter
from lance_duck.index.kind import ROW, VALUE, Rows
from lance_duck.index.zones.costs import WAITING_ZONES
from lance_duck.index.zones.values import hashes_of
from lance_duck.index.zones.write import FilterWriter
from lance_duck.index.zones.zones import (
    FRAGMENT_BITS,
    Ints,
    Mask,
    Zones,
    ZoneStatistics,
    joined_zones,
    pieces_of,
)
from lance_duck.rows.row_set import RowSet


def collect(
    rows: pa.RecordBatchReader, rows_per_zone: int, progress: Callable[[int], None] | None = None
) -> tuple[ZoneStatistics, RowSet]:
    """Return the zone statistics of rows in table order, and the rows that are null."""
    type_ = rows.schema.field(VALUE).type
    statistics = _PieceStatistics(type_)
    nulls: list[RowSet] = []
    for piece in cut_batches(rows, rows_per_zone, nulls, progress):
        statistics.add(*pieces_of(*piece))
    return statistics.finish(), RowSet.union(nulls)


class _PieceStatistics:
    """Collects statistics of row ranges in order, and merges the ranges of a zone."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._pieces: list[ZoneStatistics] = []
        self._groups: list[Ints] = []
        self._waiting = 0

    def add(self, pieces: ZoneStatistics, groups: Ints) -> None:
        self._pieces.append(pieces)
        self._groups.append(groups)
        self._waiting += len(groups)
        if self._waiting > WAITING_ZONES and len(self._pieces) > 1:
            self._join()

    def finish(self) -> ZoneStatistics:
        if not self._pieces:
            nothing = pa.array([], self._type)
            none = np.empty(0, np.int64)
            return ZoneStatistics(Zones(np.empty(0, np.uint64), none), nothing, nothing, none, none)
        self._join()
        return self._pieces[0]

    def _join(self) -> None:
        groups = np.concatenate(self._groups)
        self._pieces = [joined_zones(ZoneStatistics.concat(self._pieces), groups)]
        self._groups = [distinct(groups)]
        self._waiting = 0


def write_filters(
    rows: pa.RecordBatchReader,
    writer: FilterWriter,
    rows_per_zone: int,
    blocks: int,
    progress: Callable[[int], None] | None = None,
) -> RowSet:
    """Write the zone filters of rows in table order. Returns the rows that are null."""
    zone = _Zone(blocks)
    nulls: list[RowSet] = []
    for values, names, starts, numbers in cut_batches(rows, rows_per_zone, nulls, progress):
        present = values.is_valid().to_numpy(zero_copy_only=False)
        hashes = hashes_of(values)
        stops = np.append(starts[1:], len(names))
        for begin, end, number in zip(starts.tolist(), stops.tolist(), numbers.tolist(), strict=True):
            if number != zone.number:
                zone.write(writer)
                zone.begin(number, int(names[begin]))
            zone.take(int(names[end - 1]), hashes[begin:end], present[begin:end])
    zone.write(writer)
    return RowSet.union(nulls)


class _Zone:
    """The current zone, to which rows are added."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self.number = -1
        self._first = self._last = 0
        self._has_null = False
        self._words = new_filter(0)

    def begin(self, number: int, first: int) -> None:
        self.number, self._first, self._has_null = number, first, False
        self._words = new_filter(self._blocks)

    def take(self, last: int, hashes: Hashes, present: Mask) -> None:
        self._last = last
        all_ = bool(present.all())
        self._has_null |= not all_
        insert(self._words, hashes if all_ else hashes[present])

    def write(self, writer: FilterWriter) -> None:
        if self.number >= 0:
            writer.add(self._first, self._last - self._first + 1, self._has_null, self._words)


class Cutter:
    """Splits rows in table order into zones. A zone never extends beyond its fragment.

    Args:
        rows_per_zone: Row count of a zone, except the last of a fragment.
    """

    def __init__(self, rows_per_zone: int) -> None:
        self._rows_per_zone = rows_per_zone
        self._fragment = -1
        self._rows = 0  # rows of this fragment so far
        self._zone = -1

    def cut(self, rows: Rows) -> tuple[Ints, Ints]:
        """Split the next rows into stretches, each of which lies within one zone.

        The first stretch may continue the last zone of the previous call.

        Returns:
            The position of each stretch's first row, and its zone number, counted from 0.
        """
        runs, size = _runs(rows), self._rows_per_zone
        stops = [*runs[1:], len(rows)]
        starts, zones = [], []
        for begin, stop in zip(runs, stops, strict=True):
            fragment = int(rows[begin] >> FRAGMENT_BITS)
            before = self._rows if fragment == self._fragment else 0
            begins = np.arange(begin - before % size, stop, size)
            is_open = begins[0] < begin
            begins[0] = begin
            starts.append(begins)
            zones.append(np.arange(len(begins)) + self._zone + (not is_open))
            self._fragment, self._rows, self._zone = fragment, before + stop - begin, int(zones[-1][-1])
        return np.concatenate(starts), np.concatenate(zones)


def cut_batches(
    rows: pa.RecordBatchReader, rows_per_zone: int, nulls: list[RowSet], progress: Callable[[int], None] | None = None
) -> Iterator[tuple[pa.Array, Rows, Ints, Ints]]:
    """Yield batches in table order: their values, their rows, and the results of `Cutter.cut`.

    Args:
        rows: Reader with the columns `kind.VALUE` and `kind.ROW`.
        rows_per_zone: Row count of a zone, except the last of a fragment.
        nulls: List to which the null rows of each batch are appended.
        progress: Called with the number of processed rows, before the next batch is read.
    """
    cutter = Cutter(rows_per_zone)
    num_rows = 0
    for batch in rows:
        if not batch.num_rows:
            continue
        values, names = batch.column(VALUE), batch.column(ROW).to_numpy()
        yield values, names, *cutter.cut(names)
        if values.null_count:
            nulls.append(RowSet.of(names[values.is_null().to_numpy(zero_copy_only=False)]))
        num_rows += batch.num_rows
        if progress is not None:
            progress(num_rows)


def _runs(rows: Rows) -> list[int]:
    """Return the index in `rows` at which each fragment begins. In table order, each fragment is one run."""
    if rows[0] >> FRAGMENT_BITS == rows[-1] >> FRAGMENT_BITS:
        return [0]
    keys = rows >> FRAGMENT_BITS
    return [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()]
