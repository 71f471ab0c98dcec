from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lance_duck.encoding.arrow.take import take
from lance_duck.encoding.block import FixedSizeList, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]


def flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def lists(dimension: int, values: pb.CompressiveEncoding, validity: bool = False) -> pb.CompressiveEncoding:
    message = pb.FixedSizeList(items_per_value=dimension, values=values, has_validity=validity)
    return pb.CompressiveEncoding(fixed_size_list=message)


def codec(message: pb.CompressiveEncoding) -> Codec:
    return codec_from_proto(message)


def bits(values: list[int]) -> bytes:
    return np.packbits(np.array(values, np.uint8), bitorder="little").tobytes()


def items_of(block: FixedSizeList) -> FixedWidth:
    assert isinstance(block.items, FixedWidth)
    return block.items


def test_lists_without_nulls_are_their_items(make_chunks: Make) -> None:
    block = codec(lists(3, flat(8))).decode_chunks(make_chunks([[b"abcdef"], [b"ghi"]], [2, 1]))
    assert isinstance(block, FixedSizeList)
    assert (block.dimension, block.count, block.validity) == (3, 3, None)
    assert items_of(block).data.tobytes() == b"abcdefghi"
    assert items_of(block).count == 9


def test_each_chunk_stores_validity_first(make_chunks: Make) -> None:
    chunks = make_chunks([[bits([1, 0, 1, 1, 1, 0]), b"abcdef"], [bits([0, 1, 1]), b"ghi"]], [2, 1])
    message = lists(3, flat(8), validity=True)
    assert codec(message).num_buffers == 2
    block = codec(message).decode_chunks(chunks)
    assert block.validity.tolist() == [1, 0, 1, 1, 1, 0, 0, 1, 1]
    assert items_of(block).data.tobytes() == b"abcdefghi"


def test_nested_lists_store_one_validity_per_level(make_chunks: Make) -> None:
    message = lists(2, lists(3, flat(16), validity=True), validity=True)
    buffers = [bits([1, 0]), bits([1, 1, 0, 0, 0, 1]), np.arange(6, dtype="<u2").tobytes()]
    block = codec(message).decode_chunks(make_chunks([buffers], [1]))
    assert codec(message).num_buffers == 3
    assert block.validity.tolist() == [1, 0]
    assert isinstance(block.items, FixedSizeList)
    assert (block.items.count, block.items.validity.tolist()) == (2, [1, 1, 0, 0, 0, 1])
    assert items_of(block.items).data.view("<u2").tolist() == list(range(6))


def test_bit_lists_start_at_a_byte_boundary_in_each_chunk(make_chunks: Make) -> None:
    chunks = make_chunks([[bits([1, 0, 1, 1, 1, 1])], [bits([0, 1, 0])]], [2, 1])
    block = codec(lists(3, flat(1))).decode_chunks(chunks)
    assert items_of(block).data.tolist() == [1, 0, 1, 1, 1, 1, 0, 1, 0]


def test_single_values_without_nulls_are_not_copied() -> None:
    data = np.arange(24, dtype=np.uint8)
    block = codec(lists(2, lists(3, flat(16)))).decode_values(FixedWidth(96, data, 2))
    assert block.count == 2
    assert block.items.count == 4
    assert items_of(block.items).data.tolist() == list(range(24))
    assert np.shares_memory(items_of(block.items).data, data)


def test_single_values_hold_the_validity_of_all_levels() -> None:
    rows = [bits([1, 0]) + bits([1, 1, 1, 0, 0, 0]) + b"abcdef", bits([1, 1]) + bits([0, 1, 0, 1, 0, 1]) + b"ghijkl"]
    message = lists(2, lists(3, flat(8), validity=True), validity=True)
    block = codec(message).decode_values(FixedWidth(64, np.frombuffer(b"".join(rows), np.uint8), 2))
    assert block.validity.tolist() == [1, 0, 1, 1]
    assert block.items.validity.tolist() == [1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0, 1]
    assert items_of(block.items).data.tobytes() == b"abcdefghijkl"


def test_single_values_of_bits_are_spread() -> None:
    rows = bits([1, 0, 1]) + bits([1] * 16) + bits([1, 1, 0]) + bits([0] * 15 + [1])
    block = codec(lists(16, flat(1))).decode_values(FixedWidth(16, np.frombuffer(rows[1:3], np.uint8), 1))
    assert items_of(block).data.tolist() == [1] * 16
    message = lists(3, flat(1), validity=True)
    block = codec(message).decode_values(FixedWidth(16, np.frombuffer(bits([1, 0, 1]) + bits([0, 1, 1]), np.uint8), 1))
    assert block.validity.tolist() == [1, 0, 1]
    assert items_of(block).data.tolist() == [0, 1, 1]


def test_all_null_items_have_validity_and_no_bytes() -> None:
    constant = pb.CompressiveEncoding(constant=pb.Constant())
    block = codec(lists(2, lists(5, constant, validity=True))).decode_values(FixedWidth(16, np.zeros(6, np.uint8), 3))
    assert block.items.validity.tolist() == [0] * 30
    assert items_of(block.items) == FixedWidth(0, items_of(block.items).data, 30)
    assert len(items_of(block.items).data) == 0
    assert take(block, np.array([1, 1], np.int64)).items.items.count == 20
    for message in (lists(2, constant), pb.CompressiveEncoding(constant=pb.Constant(value=b"x"))):
        with pytest.raises(UnsupportedError):
            codec(message).decode_values(FixedWidth(8, np.zeros(1, np.uint8), 1))


def test_blocks_of_lists_cannot_hold_nulls() -> None:
    block = codec(lists(2, flat(8))).decode_block(np.frombuffer(b"abcd", np.uint8), 2)
    assert items_of(block).data.tobytes() == b"abcd"
    with pytest.raises(UnsupportedError):
        codec(lists(2, flat(8), validity=True)).decode_block(np.frombuffer(b"abcd", np.uint8), 2)


def test_impossible_list_counts_are_rejected(make_chunks: Make) -> None:
    for count in (3, 1 << 40, 1 << 62, -1):
        with pytest.raises(CorruptError):
            codec(lists(3, flat(8))).decode_chunks(make_chunks([[b"abcdef"]], [count]))
        with pytest.raises(CorruptError):
            codec(lists(3, flat(8), validity=True)).decode_chunks(make_chunks([[b"\xff", b"a" * 30]], [count]))
        with pytest.raises(CorruptError):
            codec(lists(3, flat(8))).decode_block(np.zeros(6, np.uint8), count)


def test_single_values_of_another_size_are_rejected() -> None:
    for values in (
        FixedWidth(24, np.zeros(6, np.uint8), 2),
        FixedWidth(16, np.zeros(3, np.uint8), 2),
        VariableWidth(np.array([0, 2], np.int32), np.zeros(2, np.uint8)),
    ):
        with pytest.raises(CorruptError):
            codec(lists(2, flat(8))).decode_values(values)


def test_fixed_size_list_descriptions_are_validated() -> None:
    for dimension in (0, 1 << 31):
        with pytest.raises(UnsupportedError):
            codec(lists(dimension, flat(8)))
    packed = pb.CompressiveEncoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=32))
    with pytest.raises(UnsupportedError):
        codec(lists(2, packed)).decode_values(FixedWidth(64, np.zeros(8, np.uint8), 1))
