"""Zones: stretches of rows of one fragment that a file summarizes.

columns of such a file, a row for each zone:
    fragment_id   uint64
    zone_start    uint64, offset of the first row of the zone
    zone_length   uint64, number of offsets from the first row to the last one, deleted rows between them included
metadata
    null_bitmap   number of the global buffer with the row address map of all nulls
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.files import SegmentFile
from lance_duck.index.kind import ROW, VALUE, Rows
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map
from lance_duck.wire.limits import OFFSET_MASK, ROW_OFFSETS

COLUMNS: Final = ("fragment_id", "zone_start", "zone_length")
NULL_BITMAP: Final = "null_bitmap"

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

_HIGH = np.uint64(32)
_LOW = np.uint64(OFFSET_MASK)


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones; methods expect them in ascending order of the first row.

    Attributes:
        first: Address of the first row of each zone.
        length: Number of offsets that each zone spans, at least 1.
    """

    first: Rows
    length: Ints

    def __len__(self) -> int:
        return len(self.first)

    @property
    def fragments(self) -> Rows:
        """Id of the fragment of each zone."""
        return self.first >> _HIGH

    @property
    def offsets(self) -> Rows:
        """Offset of the first row of each zone."""
        return self.first & _LOW

    def groups(self, joinable: Mask, rows_per_zone: int) -> Ints:
        """Return a number for each zone; neighbours that may become one zone share a number.

        Args:
            joinable: bool: whether each zone may be joined with others.
            rows_per_zone: Number of offsets that a joined zone may span.
        """
        offsets = self.offsets.astype(np.int64)
        cell = offsets // rows_per_zone
        inside = joinable & ((offsets + self.length - 1) // rows_per_zone == cell)
        first, last = slice(None, -1), slice(1, None)
        touches = self.first[first] + self.length[first].astype(np.uint64) == self.first[last]
        same = touches & inside[first] & inside[last] & (cell[first] == cell[last])
        same &= self.fragments[first] == self.fragments[last]
        return np.cumsum(np.append(0, ~same)) if len(self) else np.empty(0, np.int64)

    @cached_property
    def overlapping(self) -> frozenset[int]:
        """Ids of fragments in which zones overlap: the summaries of such zones need not hold for all their rows.

        A writer that merges segments may keep zones of a fragment from before its column was rewritten.
        """
        ends = self.first + self.length.astype(np.uint64)
        crossing = np.flatnonzero(self.first[1:] < np.maximum.accumulate(ends)[:-1])
        return frozenset((self.first[crossing + 1] >> _HIGH).tolist())

    def rows(self, mask: Mask) -> RowSet:
        """Return the rows of some zones."""
        first, length = self.first[mask], self.length[mask]
        if not len(first):
            return RowSet({})
        ends = np.maximum.accumulate(first + length.astype(np.uint64))
        keys = first >> _HIGH
        begins = np.flatnonzero(np.append(True, (first[1:] > ends[:-1]) | (keys[1:] != keys[:-1])))
        starts = (first[begins] & _LOW).tolist()
        last = np.append(begins[1:], len(first)) - 1
        stops = (ends[last] - (keys[last] << _HIGH)).tolist()
        return RowSet.of_ranges(zip(keys[begins].tolist(), starts, stops, strict=True))

    def count(self, mask: Mask) -> int:
        """Return the number of offsets that some zones span."""
        return int(self.length[mask].sum())

    def row_bound(self, fragment_id: int) -> int | None:
        """Return one more than the largest offset of the zones in a fragment; None if it has no zones."""
        in_fragment = self.fragments == np.uint64(fragment_id)
        ends = (self.first[in_fragment] & _LOW).astype(np.int64) + self.length[in_fragment]
        return int(ends.max()) if len(ends) else None


def read_zones(file: SegmentFile) -> tuple[Zones, Ints]:
    """Read the extents of zones, in ascending order, and the row of each in the file.

    Raises:
        CorruptError: A zone has no rows, or reaches beyond the largest offset of a fragment.
    """
    for name in COLUMNS:
        file.column(name, pa.uint64())
    columns = file.read(COLUMNS)
    if any(column.null_count for column in columns):
        raise CorruptError("null in the extent of a zone", where=file.path)
    fragment, start, length = (column.to_numpy() for column in columns)
    limit = np.uint64(ROW_OFFSETS)
    if ((fragment >= limit) | (start >= limit) | (length > limit) | (length == 0) | (start + length > limit)).any():
        raise CorruptError("extent of a zone", where=file.path, expected=f"1 … {ROW_OFFSETS} rows of a fragment")
    first = fragment << _HIGH | start
    order = np.argsort(first, kind="stable")
    return Zones(first[order], length[order].astype(np.int64)), order


def read_nulls(file: SegmentFile, zones: Zones) -> RowSet:
    """Read the rows that are null.

    Raises:
        UnsupportedError: The file does not record nulls: its writer may also have placed zones wrongly, as the first
            writers did in fragments with deleted rows.
        CorruptError: The record of nulls is broken.
    """
    number = file.metadata.get(NULL_BITMAP)
    if number is None:
        raise UnsupportedError(
            "zones of an early writer, which do not record nulls", where=file.path, remedy="create the index again"
        )
    if not number.isdecimal() or not number.isascii() or len(number) > 9:
        raise CorruptError(f"metadata {NULL_BITMAP!r}", where=file.path, expected="a number", found=repr(number))
    return read_row_address_map(file.global_buffer(int(number)), file.path, zones.row_bound)


class Cutter:
    """A cutter of rows in table order into zones, which end with their fragment.

    Args:
        rows_per_zone: Rows of a zone, except the last of a fragment.
    """

    def __init__(self, rows_per_zone: int) -> None:
        self._rows_per_zone = rows_per_zone
        self._fragment = -1
        self._rows = 0  # of this fragment so far
        self._zone = -1

    def cut(self, rows: Rows) -> tuple[Ints, Ints]:
        """Cut further rows; return the place where each piece begins, and the number of its zone, from 0.

        The first piece may belong to the zone of the last piece of the call before.
        """
        runs, size = _runs(rows), self._rows_per_zone
        stops = [*runs[1:], len(rows)]
        starts, zones = [], []
        for begin, stop in zip(runs, stops, strict=True):
            fragment = int(rows[begin] >> _HIGH)
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
    """Yield the batches of rows in table order, cut into zones: values, names, and pieces as `Cutter.cut` returns them.

    Args:
        rows: Reader with the columns `kind.VALUE` and `kind.ROW`.
        rows_per_zone: Rows of a zone, except the last of a fragment.
        nulls: List that the rows that are null are appended to.
        progress: Called with the number of rows so far, before the next batch is read.
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
    """Return the place where each fragment begins; in table order each fragment is one run."""
    if rows[0] >> _HIGH == rows[-1] >> _HIGH:
        return [0]
    keys = rows >> _HIGH
    return [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist()]
