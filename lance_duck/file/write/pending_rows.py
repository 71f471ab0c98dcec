"""Rows of a physical column that wait for a full page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import has_offsets
from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.encoding.write.shred import Outline
from lance_duck.errors import ArrayLimitError
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PendingRows:
    """Some rows of a physical column.

    Attributes:
        values: One value per slot, in a storage type.
        outline: Definition and repetition entries of the rows, for all layers.
        num_rows: Number of rows.
        stride: Number of entries per row, for columns without lists.
    """

    values: pa.Array
    outline: Outline
    num_rows: int
    stride: int = 1

    @property
    def num_bytes(self) -> int:
        """Number of bytes of values and levels. Each row adds one bit, even if it has neither."""
        return values_bytes(self.values) + self.outline.count * self._marks + self.num_rows // 8 + 1

    @property
    def _marks(self) -> int:
        """Number of bytes of levels per entry."""
        return (self.outline.begins is not None) + (self.outline.holes is not None)

    def cut(self, room: int, at_least: int) -> tuple[PendingRows | None, PendingRows | None]:
        """Split off the rows that fit into `room` bytes, but at least `at_least` rows. Returns both parts."""
        rows, entry, slot = self._fitting(room, at_least)
        if rows <= 0:
            return None, self
        if rows >= self.num_rows:
            return self, None
        return self._slice(0, entry, 0, slot, rows), self._slice(
            entry, self.outline.count, slot, len(self.values), self.num_rows - rows
        )

    def _fitting(self, room: int, at_least: int) -> tuple[int, int, int]:
        """Return the numbers of rows, entries and slots that fit into `room` bytes, with at least `at_least` rows."""
        if self.outline.begins is None and not has_offsets(self.values.type):
            each = self.stride * (values_bytes(self.values) / max(1, len(self.values)) + self._marks) + 1 / 8
            rows = min(max(int(room / each), at_least), self.num_rows)
            return rows, rows * self.stride, rows * self.stride
        entries, slots = self._bounds()
        costs = slot_costs(self.values, slots) + entries * self._marks + np.arange(len(entries)) // 8
        rows = min(max(int(costs.searchsorted(room, side="right")) - 1, at_least), self.num_rows)
        return rows, int(entries[rows]), int(slots[rows])

    def owned(self) -> PendingRows:
        """Return the rows in buffers that contain little other data. Copies them if necessary."""
        outline = self.outline
        own_outline = Outline(
            outline.count, _own(outline.begins), _own(outline.holes), outline.hidden, outline.marks, outline.lists
        )
        values = self.values if _is_own(self.values) else pa.concat_arrays([self.values])
        return PendingRows(values, own_outline, self.num_rows, self.stride)

    def _bounds(self) -> tuple[Int64s, Int64s]:
        """Return the numbers of entries and of slots before each row, then the totals. Both are int64 (rows + 1,)."""
        begins, holes = self.outline.begins, self.outline.holes
        if begins is None:
            entries = np.arange(self.num_rows + 1, dtype=np.int64) * self.stride
            return entries, entries
        entries = np.append(np.flatnonzero(begins == 0), len(begins))
        if holes is None:
            return entries, entries
        is_visible = (holes == 0) | (holes > self.outline.hidden)
        return entries, np.append(0, np.cumsum(is_visible))[entries]

    def _slice(self, start: int, stop: int, first: int, last: int, num_rows: int) -> PendingRows:
        outline = self.outline
        part = Outline(
            stop - start,
            None if outline.begins is None else outline.begins[start:stop],
            None if outline.holes is None else outline.holes[start:stop],
            outline.hidden,
            outline.marks,
            outline.lists,
        )
        return PendingRows(self.values.slice(first, last - first), part, num_rows, self.stride)


def values_bytes(values: pa.Array) -> int:
    """Return the size of an array without its dictionary, in bytes."""
    return int(values.indices.nbytes if pa.types.is_dictionary(values.type) else values.nbytes)


def slot_costs(values: pa.Array, slots: Int64s) -> Int64s:
    """Return the total size of the values before each given slot, in bytes."""
    if has_offsets(values.type) and len(values):
        word = 8 if values.type in (pa.large_string(), pa.large_binary()) else 4
        offsets = np.frombuffer(values.buffers()[1], dtype=f"<i{word}")[values.offset :]
        return offsets[slots].astype(np.int64) - int(offsets[0]) + slots * word
    return (slots * (values_bytes(values) / max(1, len(values)))).astype(np.int64)


def join_pending_rows(parts: list[PendingRows]) -> list[PendingRows]:
    """Join rows into one part, or into several if a joined dictionary would overflow its index type."""
    if len(parts) < 2:
        return parts
    try:
        return [_join_all(parts)]
    except ArrayLimitError:
        half = len(parts) // 2
        return join_pending_rows(parts[:half]) + join_pending_rows(parts[half:])


def _join_all(parts: list[PendingRows]) -> PendingRows:
    first = parts[0].outline
    outline = Outline(
        sum(part.outline.count for part in parts),
        _join([part.outline.begins for part in parts], parts),
        _join([part.outline.holes for part in parts], parts),
        first.hidden,
        first.marks,
        first.lists,
    )
    values = concatenate([part.values for part in parts])
    return PendingRows(values, outline, sum(part.num_rows for part in parts), parts[0].stride)


def _join(marks: list[Bytes | None], parts: list[PendingRows]) -> Bytes | None:
    if all(mark is None for mark in marks):
        return None
    return np.concatenate(
        [
            np.zeros(part.outline.count, dtype=np.uint8) if mark is None else mark
            for mark, part in zip(marks, parts, strict=True)
        ]
    )


def _is_own(values: pa.Array) -> bool:
    """Return whether an array uses most of its buffers."""
    buffers = [buffer for buffer in values.buffers() if buffer is not None]
    return all(buffer.parent is None for buffer in buffers) and sum(b.size for b in buffers) <= 2 * values.nbytes + 1024


def _own(marks: Bytes | None) -> Bytes | None:
    return marks if marks is None or marks.base is None else marks.copy()
