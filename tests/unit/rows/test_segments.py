from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.rows.row_ids import read_row_ids
from lance_duck.rows.segment import segment_from_proto
from lance_duck.wire.pb import rowids_pb2

U64 = 2**64 - 1


def encoded(values: list[int], width: int) -> rowids_pb2.EncodedU64Array:
    if width == 8:
        return rowids_pb2.EncodedU64Array(u64_array={"values": struct.pack(f"<{len(values)}Q", *values)})
    base = min(values, default=0)
    code, name = {2: ("H", "u16_array"), 4: ("I", "u32_array")}[width]
    data = struct.pack(f"<{len(values)}{code}", *(v - base for v in values))
    return rowids_pb2.EncodedU64Array(**{name: {"base": base, "offsets": data}})


def bitmap(present: list[bool]) -> bytes:
    return np.packbits(np.array(present, np.uint8), bitorder="little").tobytes()


@st.composite
def segments(draw: st.DrawFn) -> tuple[rowids_pb2.U64Segment, list[int]]:
    kind = draw(st.sampled_from(["range", "holes", "bitmap", "sorted", "array"]))
    start = draw(st.one_of(st.integers(0, 2000), st.integers(U64 - 5000, U64 - 3000)))
    span = draw(st.integers(0, 2500))
    seed = draw(st.integers(0, 2**32))
    share = draw(st.sampled_from([0.001, 0.1, 0.5, 0.99]))
    present = np.random.default_rng(seed).random(span) < share
    ids = [start + i for i in np.flatnonzero(present).tolist()]
    width = draw(st.sampled_from([2, 4, 8]))
    message = rowids_pb2.U64Segment()
    if kind == "range":
        message.range.start, message.range.end = start, start + span
        return message, list(range(start, start + span))
    if kind == "holes":
        holes = [start + i for i in np.flatnonzero(~present).tolist()]
        message.range_with_holes.start, message.range_with_holes.end = start, start + span
        message.range_with_holes.holes.CopyFrom(encoded(holes, width))
    elif kind == "bitmap":
        message.range_with_bitmap.start, message.range_with_bitmap.end = start, start + span
        message.range_with_bitmap.bitmap = bitmap(present.tolist())
    elif kind == "sorted":
        message.sorted_array.CopyFrom(encoded(ids, width))
    else:
        ids = [ids[i] for i in np.random.default_rng(seed).permutation(len(ids)).tolist()]
        message.array.CopyFrom(encoded(ids, width))
    return message, ids


@given(segments(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_segment_behaves_like_the_list_of_its_ids(
    case: tuple[rowids_pb2.U64Segment, list[int]], data: st.DataObject
) -> None:
    message, ids = case
    segment = segment_from_proto(message, "here")
    assert segment.count == len(ids)
    assert (segment.low, segment.high) == ((min(ids), max(ids)) if ids else (1, 0))
    start = data.draw(st.integers(0, len(ids)))
    stop = data.draw(st.integers(start, len(ids)))
    assert segment.slice(start, stop).tolist() == ids[start:stop]
    assert segment.slice(start, stop).dtype == np.uint64
    if ids:
        places = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=20))
        assert segment.take(np.array(places, np.int64)).tolist() == [ids[i] for i in places]
    asked = data.draw(st.lists(st.integers(0, U64), max_size=5)) + ids[:50] + [i + 1 for i in ids[:50]]
    expected = {v: i for i, v in enumerate(ids)}
    assert segment.find(np.array(asked, np.uint64)).tolist() == [expected.get(v, -1) for v in asked]


@given(st.lists(segments(), min_size=1, max_size=4), st.data())
@settings(max_examples=100, deadline=None)
def test_a_sequence_is_its_segments_in_a_row(
    cases: list[tuple[rowids_pb2.U64Segment, list[int]]], data: st.DataObject
) -> None:
    ids = [i for _, part in cases for i in part]
    message = rowids_pb2.RowIdSequence(segments=[m for m, _ in cases])
    sequence = read_row_ids(message.SerializeToString(), "here", len(ids))
    assert len(sequence) == len(ids)
    assert sequence.slice(0, len(ids)).tolist() == ids
    start = data.draw(st.integers(0, len(ids)))
    stop = data.draw(st.integers(start, len(ids)))
    assert sequence.slice(start, stop).tolist() == ids[start:stop]
    if ids:
        places = data.draw(st.lists(st.integers(0, len(ids) - 1), max_size=20))
        assert sequence.take(np.array(places, np.int64)).tolist() == [ids[i] for i in places]


def test_a_bitmap_counts_from_its_least_significant_bit() -> None:
    message = rowids_pb2.U64Segment(range_with_bitmap={"start": 3, "end": 16, "bitmap": b"\x03\x10"})
    segment = segment_from_proto(message, "here")
    assert segment.slice(0, segment.count).tolist() == [3, 4, 15]


@pytest.mark.parametrize(
    "message",
    [
        rowids_pb2.U64Segment(range={"start": 5, "end": 4}),
        rowids_pb2.U64Segment(range={"start": 0, "end": 2**63}),
        rowids_pb2.U64Segment(range_with_bitmap={"start": 0, "end": 9, "bitmap": b"\xff"}),
        rowids_pb2.U64Segment(range_with_bitmap={"start": 0, "end": 2**60, "bitmap": b"\xff"}),
        rowids_pb2.U64Segment(range_with_holes={"start": 0, "end": 9, "holes": encoded([10], 2)}),
        rowids_pb2.U64Segment(range_with_holes={"start": 0, "end": 9, "holes": encoded([4, 3], 8)}),
        rowids_pb2.U64Segment(sorted_array=encoded([3, 3], 8)),
        rowids_pb2.U64Segment(array={"u16_array": {"base": U64, "offsets": b"\x01\x00"}}),
        rowids_pb2.U64Segment(array={"u32_array": {"base": 0, "offsets": b"\x01\x00"}}),
    ],
)
def test_contradictory_segments_are_corrupt(message: rowids_pb2.U64Segment) -> None:
    with pytest.raises(CorruptError):
        segment_from_proto(message, "here")


def test_an_unknown_segment_form_is_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        segment_from_proto(rowids_pb2.U64Segment(), "here")


def test_a_huge_range_is_rejected_without_expansion() -> None:
    message = rowids_pb2.RowIdSequence(segments=[{"range": {"start": 0, "end": 2**60}}])
    with pytest.raises(CorruptError):
        read_row_ids(message.SerializeToString(), "here")
    with pytest.raises(CorruptError):
        read_row_ids(message.SerializeToString(), "here", 2**60)


@given(st.binary(max_size=64))
def test_arbitrary_bytes_raise_errors_of_this_package_only(data: bytes) -> None:
    with suppress(LanceDuckError):
        assert len(read_row_ids(data, "here", 10)) == 10
