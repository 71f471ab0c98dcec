from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.v20.array import MAX_COUNT, PageValues
from lance_duck.encoding.v20.bitpacked import touched
from lance_duck.encoding.v20.runs import RowRuns, runs_of_rows, span
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings20_pb2 as pb

Open = Callable[..., Any]
Encoding = pb.ArrayEncoding


def flat(bits: int, index: int = 0, scheme: str | None = None) -> Encoding:
    message = pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=index))
    if scheme is not None:
        message.compression.scheme = scheme
    return Encoding(flat=message)


def valid(values: Encoding) -> Encoding:
    return Encoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def nullable(values: Encoding, index: int) -> Encoding:
    some = pb.Nullable.SomeNull(validity=flat(1, index), values=values)
    return Encoding(nullable=pb.Nullable(some_nulls=some))


def binary(first: int = 0, adjustment: int = 100) -> Encoding:
    return Encoding(
        binary=pb.Binary(indices=valid(flat(64, first)), bytes=flat(8, first + 1), null_adjustment=adjustment)
    )


ALL_NULL = Encoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))
ENDS = np.array([2, 2, 105, 9], "<u8").tobytes()  # "ab", "", null of 3 bytes, "fghi"
TEXT = b"abcdefghi"


def read(opened: Any, runs: RowRuns, arrow_type: pa.DataType) -> list[Any]:
    values: PageValues = run(opened.array.read(runs))
    assert values.count == runs.count
    if values.block is None:
        return [None] * values.count
    found = block_to_arrow(values.block, arrow_type, values.validity, "test")
    found.validate(full=True)
    assert len(found) == runs.count
    rows: list[Any] = found.to_pylist()
    return rows


def check(opened: Any, arrow_type: pa.DataType, expected: list[Any]) -> None:
    """All rows, each row, every pair and slice equal the expected ones."""
    count = len(expected)
    for a in range(count):
        for b in range(a, count):
            assert read(opened, span(a, b + 1), arrow_type) == expected[a : b + 1]
            pair = np.array(sorted({a, b}))
            assert read(opened, runs_of_rows(pair, count), arrow_type) == [expected[i] for i in pair]
    assert read(opened, span(0, 0), arrow_type) == []


def test_flat_values_are_read_in_part(open_array: Open) -> None:
    values = [5, -7, 2**31 - 1, 0]
    opened = open_array(flat(32), [np.array(values, "<i4").tobytes()], 4, pa.int32())
    check(opened, pa.int32(), values)
    opened.source.ranges.clear()
    read(opened, span(1, 3), pa.int32())
    assert opened.source.ranges == [(64 + 4, 8)]


def test_a_take_of_distant_rows_reads_only_those_rows(open_array: Open) -> None:
    opened = open_array(flat(64), [np.arange(100_000, dtype="<i8").tobytes()], 100_000, pa.int64())
    rows = np.array([0, 1, 50_000, 99_999])
    assert read(opened, runs_of_rows(rows, 100_000), pa.int64()) == rows.tolist()
    assert opened.source.ranges == [(64, 16), (64 + 400_000, 8), (64 + 799_992, 8)]


def test_neighbouring_rows_are_read_together(open_array: Open) -> None:
    opened = open_array(flat(64), [np.arange(1000, dtype="<i8").tobytes()], 1000, pa.int64())
    rows = np.arange(0, 500, 7)
    assert read(opened, runs_of_rows(rows, 1000), pa.int64()) == rows.tolist()
    assert len(opened.source.ranges) == 1


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.data())
def test_bits_are_read_at_any_position(open_array: Open, bits: list[bool], data: st.DataObject) -> None:
    opened = open_array(flat(1), [np.packbits(bits, bitorder="little").tobytes()], len(bits), pa.bool_())
    rows = np.array(sorted(data.draw(st.sets(st.integers(0, len(bits) - 1)))), np.int64)
    assert read(opened, runs_of_rows(rows, len(bits)), pa.bool_()) == [bits[i] for i in rows]


def test_null_flags_are_read_with_their_values(open_array: Open) -> None:
    buffers = [bytes([0b0101]), bytes([1, 2, 3, 4])]
    check(open_array(nullable(flat(8, 1), 0), buffers, 4, pa.uint8()), pa.uint8(), [1, None, 3, None])


def test_all_null_pages_need_no_bytes(open_array: Open) -> None:
    check(open_array(ALL_NULL, [], 3, pa.int64()), pa.int64(), [None] * 3)


def test_binary_values_end_at_their_index_and_nulls_are_adjusted(open_array: Open) -> None:
    check(open_array(binary(), [ENDS, TEXT], 4, pa.string()), pa.string(), ["ab", "", None, "fghi"])


def test_a_string_is_read_with_its_ends_and_its_bytes_only(open_array: Open) -> None:
    opened = open_array(binary(), [ENDS, TEXT], 4, pa.string())
    assert read(opened, span(3, 4), pa.string()) == ["fghi"]
    assert opened.source.ranges == [(64 + 16, 16), (128 + 5, 4)]


def test_plain_indices_start_at_one_and_zero_is_null(open_array: Open) -> None:
    encoding = Encoding(dictionary=pb.Dictionary(indices=valid(flat(8, 2)), items=binary(), num_dictionary_items=4))
    opened = open_array(encoding, [ENDS, TEXT, bytes([4, 0, 1, 2, 3])], 5, pa.string())
    check(opened, pa.string(), ["fghi", None, "ab", "", None])


def test_indices_of_dictionary_columns_count_from_zero(open_array: Open) -> None:
    arrow_type = pa.dictionary(pa.int8(), pa.string())
    encoding = Encoding(dictionary=pb.Dictionary(indices=valid(flat(8, 2)), items=binary(), num_dictionary_items=4))
    opened = open_array(encoding, [ENDS, TEXT, bytes([3, 0, 1, 2])], 4, arrow_type)
    check(opened, pa.string(), ["fghi", "ab", "", None])


def test_dictionary_items_are_read_once(open_array: Open) -> None:
    encoding = Encoding(dictionary=pb.Dictionary(indices=valid(flat(8, 2)), items=binary(), num_dictionary_items=4))
    opened = open_array(encoding, [ENDS, TEXT, bytes([1, 2])], 2, pa.string())
    read(opened, span(0, 1), pa.string())
    opened.source.ranges.clear()
    read(opened, span(1, 2), pa.string())
    assert opened.source.ranges == [(64 * 3 + 1, 1)]


def test_a_dictionary_of_a_null_decodes_to_nulls(open_array: Open) -> None:
    encoding = Encoding(dictionary=pb.Dictionary(indices=flat(32), items=ALL_NULL, num_dictionary_items=1))
    opened = open_array(encoding, [bytes(8)], 2, pa.dictionary(pa.int32(), pa.string()))
    assert read(opened, span(0, 2), pa.string()) == [None, None]


def test_fixed_size_lists_may_have_null_lists_and_null_items(open_array: Open) -> None:
    arrow_type = pa.list_(pa.int16(), 2)
    items = Encoding(fixed_size_list=pb.FixedSizeList(dimension=2, items=nullable(flat(16, 1), 0)))
    buffers = [bytes([0b110111]), np.arange(6, dtype="<i2").tobytes(), bytes([0b101])]
    check(open_array(nullable(items, 2), buffers, 3, arrow_type), arrow_type, [[0, 1], None, [4, 5]])
    check(open_array(items, buffers, 3, arrow_type), arrow_type, [[0, 1], [2, None], [4, 5]])


@pytest.mark.parametrize("item", [pa.int32(), pa.bool_(), pa.string(), pa.list_(pa.float64(), 3)], ids=str)
def test_fixed_size_lists_may_hold_only_nulls(open_array: Open, item: pa.DataType) -> None:
    arrow_type = pa.list_(item, 2)
    encoding = Encoding(fixed_size_list=pb.FixedSizeList(dimension=2, items=ALL_NULL))
    check(open_array(encoding, [], 2, arrow_type), arrow_type, [[None, None]] * 2)


def test_packed_structs_are_split_into_fields(open_array: Open) -> None:
    arrow_type = pa.struct([("a", pa.int32()), ("b", pa.int8()), ("c", pa.list_(pa.int16(), 2))])
    lists = Encoding(fixed_size_list=pb.FixedSizeList(dimension=2, items=valid(flat(16))))
    packed = pb.PackedStruct(inner=[valid(flat(32)), flat(8), valid(lists)], buffer=pb.Buffer())
    rows = np.array([(1, 2, (3, 4)), (-5, 6, (7, 8))], [("a", "<i4"), ("b", "i1"), ("c", "<i2", 2)])
    opened = open_array(Encoding(packed_struct=packed), [rows.tobytes()], 2, arrow_type)
    check(opened, arrow_type, [{"a": 1, "b": 2, "c": [3, 4]}, {"a": -5, "b": 6, "c": [7, 8]}])


@pytest.mark.parametrize(("signed", "expected"), [(False, [1, 31, 16, 0, 15]), (True, [1, -1, -16, 0, 15])])
def test_bits_packed_back_to_back_are_extended(open_array: Open, signed: bool, expected: list[int]) -> None:
    packed = sum((value & 31) << (5 * i) for i, value in enumerate(expected)).to_bytes(4, "little")
    message = pb.Bitpacked(
        compressed_bits_per_value=5, uncompressed_bits_per_value=16, signed=signed, buffer=pb.Buffer()
    )
    check(open_array(Encoding(bitpacked=message), [packed], 5, pa.int16()), pa.int16(), expected)


def one_bit_block(bits: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    """1024 values of one bit as a FastLanes block of bytes: 128 lanes, 8 rows."""
    places = np.array([[row // 8 * 16 + row % 8 * 128 + lane for row in range(8)] for lane in range(128)])
    return np.packbits(bits[places], axis=1, bitorder="little").tobytes()


def test_packed_blocks_are_read_one_by_one(open_array: Open) -> None:
    bits = np.random.default_rng(0).integers(0, 2, 3 * 1024).astype(np.uint8)
    buffer = b"".join(one_bit_block(bits[i : i + 1024]) for i in range(0, len(bits), 1024))
    message = pb.BitpackedForNonNeg(compressed_bits_per_value=1, uncompressed_bits_per_value=8, buffer=pb.Buffer())
    opened = open_array(Encoding(bitpacked_for_non_neg=message), [buffer], 2500, pa.uint8())
    for rows in ([0, 1, 1023], [1023, 1024], [5, 700, 2499], list(range(2500)), [2048], [1000, 1010, 2100]):
        assert read(opened, runs_of_rows(np.array(rows), 2500), pa.uint8()) == bits[rows].tolist()
    opened.source.ranges.clear()
    read(opened, span(1100, 1200), pa.uint8())
    assert opened.source.ranges == [(64 + 128, 128)]


@given(st.sets(st.integers(0, 6000), min_size=1))
def test_only_the_touched_blocks_are_read(chosen: set[int]) -> None:
    blocks = touched(runs_of_rows(np.array(sorted(chosen)), 6001))
    found = [i for a, b in zip(blocks.starts.tolist(), blocks.stops.tolist(), strict=True) for i in range(a, b)]
    assert found == sorted({row // 1024 for row in chosen})


@pytest.mark.parametrize("bits", [8, 24])
def test_fixed_length_strings_have_no_offsets(open_array: Open, bits: int) -> None:
    encoding = Encoding(fixed_size_binary=pb.FixedSizeBinary(bytes=flat(bits), byte_width=3))
    check(open_array(encoding, [b"abcdefghi"], 3, pa.string()), pa.string(), ["abc", "def", "ghi"])


def test_constants_repeat_their_value(open_array: Open) -> None:
    opened = open_array(Encoding(constant=pb.Constant(value=b"\x07\x00")), [], 3, pa.int16())
    check(opened, pa.int16(), [7, 7, 7])


def test_compressed_buffers_are_read_whole_and_cached(open_array: Open) -> None:
    plain = np.arange(300, dtype="<u4").tobytes()
    packed = len(plain).to_bytes(8, "little") + pa.Codec("zstd").compress(plain, asbytes=True)
    opened = open_array(flat(32, scheme="zstd"), [packed], 300, pa.uint32())
    rows = [0, 1, 77, 299]
    assert read(opened, runs_of_rows(np.array(rows), 300), pa.uint32()) == rows
    assert read(opened, span(10, 12), pa.uint32()) == [10, 11]
    assert opened.source.ranges == [(64, len(packed))]


def test_lz4_buffers_are_decompressed(open_array: Open) -> None:
    packed = len(TEXT).to_bytes(4, "little") + pa.Codec("lz4_raw").compress(TEXT, asbytes=True)
    check(open_array(flat(8, scheme="lz4"), [packed], 9, pa.uint8()), pa.uint8(), list(TEXT))


def test_a_compressed_buffer_with_too_few_values_is_corrupt(open_array: Open) -> None:
    packed = len(TEXT).to_bytes(4, "little") + pa.Codec("lz4_raw").compress(TEXT, asbytes=True)
    opened = open_array(flat(8, scheme="lz4"), [packed], 12, pa.uint8())
    with pytest.raises(CorruptError):
        run(opened.array.read(span(0, 12)))


CORRUPT: dict[str, tuple[Encoding, list[bytes]]] = {
    "too few values": (flat(32), [bytes(15)]),
    "too few bits": (nullable(flat(8, 1), 0), [b"", bytes(4)]),
    "no such buffer": (flat(8, 3), [bytes(4)]),
    "nothing": (Encoding(), [bytes(4)]),
    "no nullability": (Encoding(nullable=pb.Nullable()), []),
    "no adjustment": (binary(adjustment=0), [ENDS, TEXT]),
    "too few ends": (binary(), [ENDS[:24], TEXT]),
    "width of packed values": (
        Encoding(
            bitpacked=pb.Bitpacked(compressed_bits_per_value=9, uncompressed_bits_per_value=8, buffer=pb.Buffer())
        ),
        [bytes(40)],
    ),
    "no packed fields": (Encoding(packed_struct=pb.PackedStruct(buffer=pb.Buffer())), [bytes(8)]),
    "empty constant": (Encoding(constant=pb.Constant()), []),
    "list without items": (Encoding(fixed_size_list=pb.FixedSizeList(items=flat(8))), [bytes(8)]),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_descriptions_that_do_not_match_the_bytes_are_corrupt(open_array: Open, name: str) -> None:
    encoding, buffers = CORRUPT[name]
    with pytest.raises(CorruptError):
        open_array(encoding, buffers, 4, pa.int32())


UNSUPPORTED = {
    "2.0 files do not support flat values of this width": flat(12),
    "compression": flat(8, scheme="snappy"),
    "2.0 files do not support compressed bits": flat(1, scheme="zstd"),
    "rle": Encoding(rle=pb.Rle(bits_per_value=8)),
    "belong to the whole file": Encoding(flat=pb.Flat(bits_per_value=8, buffer=pb.Buffer(buffer_type="file"))),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_encodings_of_other_versions_are_rejected_by_name(open_array: Open, name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        open_array(UNSUPPORTED[name], [bytes(64)], 4, pa.int32())


def test_dictionary_indices_beyond_the_items_are_corrupt(open_array: Open) -> None:
    encoding = Encoding(dictionary=pb.Dictionary(indices=flat(8, 2), items=binary(), num_dictionary_items=4))
    opened = open_array(encoding, [ENDS, TEXT, bytes([5])], 1, pa.string())
    with pytest.raises(CorruptError):
        run(opened.array.read(span(0, 1)))


def test_nulls_without_bytes_are_limited(open_array: Open) -> None:
    opened = open_array(ALL_NULL, [], 2**40, pa.int8())
    with pytest.raises(CorruptError):
        run(opened.array.read(span(0, MAX_COUNT + 1)))


@given(st.binary(max_size=64), st.binary(max_size=24), st.data())
def test_arbitrary_bytes_decode_or_raise_an_error(
    open_array: Open, ends: bytes, text: bytes, data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, 8))
    lists = Encoding(fixed_size_list=pb.FixedSizeList(dimension=1, items=binary()))
    choices = [
        binary(),
        Encoding(dictionary=pb.Dictionary(indices=flat(8), items=binary(), num_dictionary_items=2)),
        lists,
    ]
    try:
        opened = open_array(data.draw(st.sampled_from(choices)), [ends, text], count, pa.string())
        run(opened.array.read(span(0, count)))
    except LanceDuckError:
        pass
