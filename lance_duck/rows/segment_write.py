"""Encodes row ids as a U64Segment in the smallest of its five forms. `rows.segment` describes the bytes."""

from __future__ import annotations

import numpy as np

from lance_duck.arrow.distinct import union_of
from lance_duck.rows.costs import SEGMENT_CUTS, WIDE_GAP
from lance_duck.rows.segment import ArraySegment, Ids, Range, U64Segment
from lance_duck.wire.pb import rowids_pb2


def cut_ids(ids: Ids) -> list[U64Segment]:
    """Split ids into small segments: at each descent, and at gaps wider than `WIDE_GAP`.

    With more than `SEGMENT_CUTS` cuts, gaps are not cut. With more descents than this, the ids become one segment.
    """
    if not len(ids):
        return []
    if int(ids[-1]) - int(ids[0]) == len(ids) - 1 and _ascends(ids):
        return [Range(int(ids[0]), len(ids))]
    down = np.flatnonzero(ids[1:] <= ids[:-1]) + 1
    if len(down) > SEGMENT_CUTS:
        return [ArraySegment(ids, ascending=False)]
    far = np.flatnonzero(ids[1:] - ids[:-1] > np.uint64(WIDE_GAP)) + 1
    cuts = union_of(down, far)
    if len(cuts) > SEGMENT_CUTS:
        cuts = down
    return [_of_ascending(piece) for piece in np.split(ids, cuts)]


def segment_to_proto(segment: U64Segment) -> rowids_pb2.U64Segment:
    """Serialize a segment in its smallest form."""
    message = rowids_pb2.U64Segment()
    if isinstance(segment, Range):
        _set_range(message.range, segment.start, segment.count)
        return message
    ids = segment.slice(0, segment.count)
    if not len(ids):
        _set_range(message.range, 0, 0)
    elif not _ascends(ids):
        message.array.CopyFrom(_encode_array(ids))
    else:
        _set_smallest(message, ids)
    return message


def _of_ascending(ids: Ids) -> U64Segment:
    dense = int(ids[-1]) - int(ids[0]) == len(ids) - 1
    return Range(int(ids[0]), len(ids)) if dense else ArraySegment(ids, ascending=True)


def _set_smallest(message: rowids_pb2.U64Segment, ids: Ids) -> None:
    low, span = int(ids[0]), int(ids[-1]) - int(ids[0]) + 1
    width = _width(span)
    sizes = {"holes": width * (span - len(ids)), "bitmap": (span + 7) // 8, "array": width * len(ids)}
    smallest = min(sizes, key=lambda form: sizes[form])
    if span == len(ids):
        _set_range(message.range, low, span)
    elif smallest == "array":
        message.sorted_array.CopyFrom(_encode_array(ids))
    else:
        present = np.zeros(span, np.bool_)
        present[(ids - np.uint64(low)).astype(np.int64)] = True
        if smallest == "holes":
            _set_range(message.range_with_holes, low, span)
            holes = np.flatnonzero(~present).astype(np.uint64) + np.uint64(low)
            message.range_with_holes.holes.CopyFrom(_encode_array(holes))
        else:
            _set_range(message.range_with_bitmap, low, span)
            message.range_with_bitmap.bitmap = np.packbits(present, bitorder="little").tobytes()


def _set_range(
    message: rowids_pb2.U64Segment.Range | rowids_pb2.U64Segment.RangeWithHoles | rowids_pb2.U64Segment.RangeWithBitmap,
    start: int,
    count: int,
) -> None:
    message.start, message.end = start, start + count


def _encode_array(values: Ids) -> rowids_pb2.EncodedU64Array:
    message = rowids_pb2.EncodedU64Array()
    base = int(values.min())
    width = _width(int(values.max()) - base + 1)
    if width == 8:
        message.u64_array.values = values.astype("<u8").tobytes()
    elif width == 4:
        message.u32_array.base = base
        message.u32_array.offsets = (values - np.uint64(base)).astype("<u4").tobytes()
    else:
        message.u16_array.base = base
        message.u16_array.offsets = (values - np.uint64(base)).astype("<u2").tobytes()
    return message


def _width(span: int) -> int:
    return 2 if span <= 1 << 16 else 4 if span <= 1 << 32 else 8


def _ascends(ids: Ids) -> bool:
    return bool(np.all(ids[1:] > ids[:-1]))
