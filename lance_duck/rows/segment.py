"""U64Segment: row ids, ascending or in any order, in one of five forms.

    range               [start, end)
    range_with_holes    [start, end) without the listed ids, which ascend
    range_with_bitmap   start + i for each set bit i, least significant bit first
    sorted_array        ids that ascend
    array               ids in any order

Arrays are `EncodedU64Array`: base plus u16 or u32 little-endian offsets, or u64 values.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.rows.bitset import Bitset
from lance_duck.wire.pb import rowids_pb2

Ids = NDArray[np.uint64]
Int64s = NDArray[np.int64]

_LIMIT = 1 << 62


class U64Segment(Protocol):
    """Distinct row ids in the order of their rows.

    Attributes:
        count: Number of ids.
        low: Smallest id, or 1 if the segment is empty.
        high: Largest id, or 0 if the segment is empty.
    """

    @property
    def count(self) -> int: ...  # noqa: D102
    @property
    def low(self) -> int: ...  # noqa: D102
    @property
    def high(self) -> int: ...  # noqa: D102

    def slice(self, start: int, stop: int) -> Ids:
        """Return the ids at positions start … stop - 1. The positions must lie within the segment."""

    def take(self, places: Int64s) -> Ids:
        """Return the ids at the given positions, in any order. The positions must lie within the segment."""

    def find(self, ids: Ids) -> Int64s:
        """Return the position of each id, or -1 if the segment does not contain it."""


@dataclass(frozen=True, slots=True)
class Range:
    """The ids in [start, start + count)."""

    start: int
    count: int

    @property
    def low(self) -> int:
        """See `U64Segment`."""
        return self.start if self.count else 1

    @property
    def high(self) -> int:
        """See `U64Segment`."""
        return self.start + self.count - 1 if self.count else 0

    def slice(self, start: int, stop: int) -> Ids:
        """See `U64Segment`."""
        return np.arange(stop - start, dtype=np.uint64) + np.uint64(self.start + start)

    def take(self, places: Int64s) -> Ids:
        """See `U64Segment`."""
        return places.astype(np.uint64) + np.uint64(self.start)

    def find(self, ids: Ids) -> Int64s:
        """See `U64Segment`."""
        inside = (ids >= np.uint64(self.low)) & (ids <= np.uint64(self.high))
        return np.where(inside, ids - np.uint64(self.start), 0).astype(np.int64) - ~inside


@dataclass(frozen=True)
class RangeWithHoles:
    """The ids in [start, start + span), except start + h for each h in `holes` (int64, ascending)."""

    start: int
    span: int
    holes: Int64s

    @property
    def count(self) -> int:
        """See `U64Segment`."""
        return self.span - len(self.holes)

    @cached_property
    def low(self) -> int:
        """See `U64Segment`."""
        return int(self.slice(0, 1)[0]) if self.count else 1

    @cached_property
    def high(self) -> int:
        """See `U64Segment`."""
        return int(self.slice(self.count - 1, self.count)[0]) if self.count else 0

    def slice(self, start: int, stop: int) -> Ids:
        """See `U64Segment`."""
        return self.take(np.arange(start, stop, dtype=np.int64))

    def take(self, places: Int64s) -> Ids:
        """See `U64Segment`."""
        offsets = places + np.searchsorted(self._present_before, places, side="right")
        return offsets.astype(np.uint64) + np.uint64(self.start)

    def find(self, ids: Ids) -> Int64s:
        """See `U64Segment`."""
        inside, offsets = _offsets(ids, self.start, self.span)
        holes_before = np.searchsorted(self.holes, offsets)
        hole = np.zeros(len(ids), np.bool_)
        if len(self.holes):
            hole = self.holes[np.minimum(holes_before, len(self.holes) - 1)] == offsets
        return np.where(inside & ~hole, offsets - holes_before, -1)

    @cached_property
    def _present_before(self) -> Int64s:
        return self.holes - np.arange(len(self.holes))


@dataclass(frozen=True)
class RangeWithBitmap:
    """The ids start + i for each set bit i."""

    start: int
    bits: Bitset

    @property
    def count(self) -> int:
        """See `U64Segment`."""
        return self.bits.count

    @cached_property
    def low(self) -> int:
        """See `U64Segment`."""
        return int(self.slice(0, 1)[0]) if self.count else 1

    @cached_property
    def high(self) -> int:
        """See `U64Segment`."""
        return int(self.slice(self.count - 1, self.count)[0]) if self.count else 0

    def slice(self, start: int, stop: int) -> Ids:
        """See `U64Segment`."""
        return self.bits.select_range(start, stop).astype(np.uint64) + np.uint64(self.start)

    def take(self, places: Int64s) -> Ids:
        """See `U64Segment`."""
        return self.bits.select(places).astype(np.uint64) + np.uint64(self.start)

    def find(self, ids: Ids) -> Int64s:
        """See `U64Segment`."""
        inside, offsets = _offsets(ids, self.start, self.bits.size)
        return np.where(inside, self.bits.rank_of_set(offsets), -1) if self.bits.size else np.full(len(ids), -1)


@dataclass(frozen=True)
class ArraySegment:
    """Explicit ids, ascending or in any order."""

    values: Ids
    ascending: bool

    @property
    def count(self) -> int:
        """See `U64Segment`."""
        return len(self.values)

    @cached_property
    def low(self) -> int:
        """See `U64Segment`."""
        return int(self._sorted[0]) if self.count else 1

    @cached_property
    def high(self) -> int:
        """See `U64Segment`."""
        return int(self._sorted[-1]) if self.count else 0

    def slice(self, start: int, stop: int) -> Ids:
        """See `U64Segment`."""
        return self.values[start:stop]

    def take(self, places: Int64s) -> Ids:
        """See `U64Segment`."""
        return self.values[places]

    def find(self, ids: Ids) -> Int64s:
        """See `U64Segment`."""
        if not self.count:
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self._sorted, ids), self.count - 1)
        is_present = self._sorted[places] == ids
        return np.where(is_present, places if self._order is None else self._order[places], -1)

    @cached_property
    def _order(self) -> Int64s | None:
        return None if self.ascending else np.argsort(self.values, kind="stable")

    @cached_property
    def _sorted(self) -> Ids:
        return self.values if self._order is None else self.values[self._order]


def segment_from_proto(proto: rowids_pb2.U64Segment, where: str) -> U64Segment:
    """Build a segment from its message. Memory use is proportional to the size of the message.

    Raises:
        CorruptError: A range, bitmap or array of the message is invalid.
        UnsupportedError: The segment has an unknown form.
    """
    match proto.WhichOneof("segment"):
        case "range":
            return Range(*_extent(proto.range, where))
        case "range_with_holes":
            return _with_holes(proto.range_with_holes, where)
        case "range_with_bitmap":
            start, span = _extent(proto.range_with_bitmap, where)
            return RangeWithBitmap(start, Bitset(proto.range_with_bitmap.bitmap, span, where))
        case "sorted_array":
            values = _decode_array(proto.sorted_array, where)
            _check_ascending(values, where)
            return ArraySegment(values, ascending=True)
        case "array":
            return ArraySegment(_decode_array(proto.array, where), ascending=False)
    raise UnsupportedError("the row id segment has an unknown form", where=where)


def _with_holes(proto: rowids_pb2.U64Segment.RangeWithHoles, where: str) -> RangeWithHoles:
    start, span = _extent(proto, where)
    holes = _decode_array(proto.holes, where)
    _check_ascending(holes, where)
    if len(holes) and (int(holes[0]) < start or int(holes[-1]) >= start + span):
        raise CorruptError("a hole is outside its range of row ids", where=where)
    return RangeWithHoles(start, span, (holes - np.uint64(start)).astype(np.int64))


def _extent(
    proto: rowids_pb2.U64Segment.Range | rowids_pb2.U64Segment.RangeWithHoles | rowids_pb2.U64Segment.RangeWithBitmap,
    where: str,
) -> tuple[int, int]:
    if not 0 <= proto.end - proto.start < _LIMIT:
        raise CorruptError(
            "invalid range of row ids", where=where, expected="start <= end", found=(proto.start, proto.end)
        )
    return proto.start, proto.end - proto.start


def _decode_array(proto: rowids_pb2.EncodedU64Array, where: str) -> Ids:
    match proto.WhichOneof("array"):
        case "u16_array":
            return _from_base(proto.u16_array.base, proto.u16_array.offsets, "<u2", where)
        case "u32_array":
            return _from_base(proto.u32_array.base, proto.u32_array.offsets, "<u4", where)
        case "u64_array":
            return _whole(proto.u64_array.values, "<u8", where)
    return np.empty(0, np.uint64)


def _from_base(base: int, data: bytes, dtype: str, where: str) -> Ids:
    offsets = _whole(data, dtype, where)
    if len(offsets) and base + int(offsets.max()) >= 1 << 64:
        raise CorruptError("a row id exceeds 64 bits", where=where, found=f"base {base}")
    return offsets + np.uint64(base)


def _whole(data: bytes, dtype: str, where: str) -> Ids:
    width = np.dtype(dtype).itemsize
    if len(data) % width:
        raise CorruptError(
            "the row ids are truncated", where=where, expected=f"whole {width}-byte values", found=len(data)
        )
    return np.frombuffer(data, dtype).astype(np.uint64, copy=False)


def _check_ascending(values: Ids, where: str) -> None:
    if len(values) > 1 and not np.all(values[1:] > values[:-1]):
        raise CorruptError("the row ids do not ascend", where=where)


def _offsets(ids: Ids, start: int, span: int) -> tuple[NDArray[np.bool_], Int64s]:
    """Return whether each id is in [start, start + span), and its offset from start, or 0 if it is outside."""
    inside = ids >= np.uint64(start)
    offsets = np.where(inside, ids - np.uint64(start), 0)
    inside &= offsets < np.uint64(span)
    return inside, np.where(inside, offsets, 0).astype(np.int64)
