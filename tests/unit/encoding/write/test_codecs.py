from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.encoding.write.samples import (
    BITS,
    SIZES,
    chunks_of,
    drawn,
    flags,
    numbers,
    plain,
    texts,
    through_block,
    through_chunks,
    through_values,
)

from lance_duck.encoding.block import FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.byte_stream_split import ByteStreamSplit
from lance_duck.encoding.codecs.constant import Constant
from lance_duck.encoding.codecs.fixed_size_list import FixedSizeListCodec
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.fsst_train import sample_values, train
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.packed_struct import PackedField, PackedStructCodec, VariablePackedStruct
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.rle import Rle
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.write.codecs.compress import compress_levels
from lance_duck.encoding.write.grammar import GRAMMARS
from lance_duck.errors import UnsupportedError

WORDS = [b"", b"the quick", b"\x00\xff\xfe", b"brown fox " * 30, b"a", b"\x00"]


@pytest.mark.parametrize("bits", [8, 24, 64, 128])
def test_flat_values_round_trip(bits: int) -> None:
    block = FixedWidth(bits, np.arange(100 * bits // 8, dtype=np.uint8), 100)
    assert through_chunks(Flat(bits), block, [64, 36]) == plain(block)
    assert through_block(Flat(bits), block) == plain(block)
    assert through_values(Flat(bits), block) == plain(block)


@pytest.mark.parametrize("count", [1, 8, 9, 1025])
def test_flags_round_trip_as_bits(count: int) -> None:
    block = flags([i % 3 == 0 for i in range(count + 16)])
    assert through_chunks(Flat(1), block, [16, count]) == plain(block)
    assert len(Flat(1).encode_block(block)) == (count + 23) // 8
    with pytest.raises(UnsupportedError):
        Flat(1).encode_values(block)


@pytest.mark.parametrize("bits", BITS)
def test_every_bit_width_round_trips(bits: int) -> None:
    for width in range(bits + 1):
        block = numbers(drawn(bits, width, 1500))
        assert through_chunks(InlineBitpacking(bits), block, [1024, 476]) == plain(block), width
        if width:
            assert through_chunks(OutOfLineBitpacking(bits, width), block, [1024, 476]) == plain(block), width


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("count", SIZES)
def test_packed_blocks_of_every_size_round_trip(bits: int, count: int) -> None:
    block = numbers(drawn(bits, 3, count))
    assert through_block(InlineBitpacking(bits), block) == plain(block)
    assert through_block(OutOfLineBitpacking(bits, 3), block) == plain(block)
    codec = OutOfLineBitpacking(bits, 3)
    assert len(codec.encode_block(block)) == codec.sizes(np.array([count])).sum()


@pytest.mark.parametrize("bits", BITS)
def test_runs_round_trip(bits: int) -> None:
    values = np.repeat(np.array([7, 7, 3, 0, 3], f"u{bits // 8}"), [300, 1, 255, 1, 256])
    block = numbers(values)
    assert through_chunks(Rle(bits), block, [512, 301]) == plain(block)
    assert through_block(Rle(bits), block) == plain(block)
    assert [len(data) for data, _ in Rle(bits).encode_chunks(block, np.array([813]))] == [6 * bits // 8, 6]


@pytest.mark.parametrize("width", [4, 8])
def test_variable_width_values_round_trip(width: int) -> None:
    block = texts(WORDS, skip=5, width=width)
    codec = Variable(width * 8)
    assert through_chunks(codec, block, [4, 2]) == WORDS
    assert through_block(codec, block) == WORDS
    assert through_values(codec, block) == WORDS
    ((data, ends),) = codec.encode_chunks(block, np.array([4, 2]))
    assert [int(end) % width for end in ends] == [0, 0]
    assert len(data) == int(ends[-1])


@pytest.mark.parametrize("bits", [32, 64])
def test_split_streams_round_trip(bits: int) -> None:
    block = numbers(drawn(bits, bits, 300))
    assert through_chunks(ByteStreamSplit(bits), block, [256, 44]) == plain(block)
    assert through_block(ByteStreamSplit(bits), block) == plain(block)


@pytest.mark.parametrize("scheme", ["lz4", "zstd"])
def test_compressed_values_round_trip(scheme: str) -> None:
    codec = General(scheme, Variable(32), 5 if scheme == "zstd" else None)
    block = texts(WORDS, skip=3)
    assert through_chunks(codec, block, [4, 2]) == WORDS
    assert through_block(codec, block) == WORDS
    assert through_values(codec, block) == WORDS
    assert codec_from_proto(codec.to_proto()) == codec


def test_invalid_zstd_levels_are_rejected() -> None:
    with pytest.raises(UnsupportedError, match="level"):
        General("zstd", Variable(32), 99).encode_block(texts(WORDS))


def test_only_the_first_buffer_of_a_chunk_is_compressed() -> None:
    block = numbers(np.repeat(np.arange(500, dtype=np.uint32), 4))
    codec = General("zstd", Rle(32))
    assert through_chunks(codec, block, [1024, 976]) == plain(block)
    assert codec.encode_chunks(block, np.array([2000]))[1][0].tobytes() == b"\x04" * 500


def test_fsst_codes_round_trip() -> None:
    values = WORDS * 40
    block = texts(values, skip=3)
    codec = Fsst.of_symbols(train(sample_values(block, seed=0)), Variable(32))
    assert through_values(codec, block) == values
    assert through_block(codec, block) == values
    assert through_chunks(codec, block, [128, 112]) == values
    assert len(codec.encode_values(block).data) < len(block.data) / 5
    table = codec.to_proto().fsst.symbol_table
    assert len(table) == 2312
    assert table[4:8] == b"TSSF"


def test_an_fsst_decoder_cannot_encode() -> None:
    codec = Fsst.of_symbols(train(texts(WORDS)), Variable(32))
    with pytest.raises(UnsupportedError):
        codec_from_proto(codec.to_proto()).encode_values(texts(WORDS))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.binary(max_size=40), max_size=30), st.lists(st.binary(max_size=40), max_size=10))
def test_symbols_trained_on_any_sample_encode_any_string(sample: list[bytes], values: list[bytes]) -> None:
    codec = Fsst.of_symbols(train(texts(sample)), Variable(32))
    for block in (values, sample):
        assert through_values(codec, texts(block, skip=2)) == block


def test_samples_of_long_values_are_substrings() -> None:
    values = [bytes([i]) * 5000 for i in range(100)] + [b""]
    sample = sample_values(texts(values, skip=9), seed=3, size=4096)
    found = plain(sample)
    assert 4096 / 2 < len(sample.data) < 4096 * 2
    assert all(len(set(piece)) <= 1 and piece[:1] <= b"c" for piece in found)


def nested(has_validity: bool, bits: int) -> FixedSizeList:
    rng = np.random.default_rng(5)
    items = flags(rng.integers(0, 2, 60)) if bits == 1 else numbers(drawn(bits, bits, 60))
    validity = rng.integers(0, 2, 60).astype(np.uint8) if has_validity else None
    inner = FixedSizeList(3, items, validity, 20)
    return FixedSizeList(5, inner, rng.integers(0, 2, 20).astype(np.uint8), 4)


@pytest.mark.parametrize("has_validity", [True, False])
@pytest.mark.parametrize("bits", [1, 32])
def test_nested_lists_round_trip(has_validity: bool, bits: int) -> None:
    block = nested(has_validity, bits)
    codec = FixedSizeListCodec(5, True, FixedSizeListCodec(3, has_validity, Flat(bits)))
    assert through_chunks(codec, block, [2, 2]) == plain(block)
    assert through_values(codec, block) == plain(block)
    assert codec.value_bytes == len(codec.encode_values(block).data) // 4


def test_lists_of_numbers_are_the_numbers() -> None:
    items = numbers(drawn(32, 32, 12))
    block = FixedSizeList(4, items, None, 3)
    codec = FixedSizeListCodec(4, False, Flat(32))
    assert codec.encode_values(block).data.base is not None
    assert through_values(codec, block) == plain(block)
    assert through_block(codec, block) == plain(block)


def test_lists_without_any_valid_item_are_their_validity() -> None:
    block = FixedSizeList(9, FixedWidth(0, np.empty(0, np.uint8), 18), np.zeros(18, np.uint8), 2)
    codec = FixedSizeListCodec(9, True, Constant())
    assert len(codec.encode_values(block).data) == 4
    decoded = codec_from_proto(codec.to_proto()).decode_values(codec.encode_values(block))
    assert isinstance(decoded, FixedSizeList)
    assert decoded.validity is not None
    assert not decoded.validity.any()


def test_packed_structs_round_trip() -> None:
    fields = (numbers(drawn(8, 8, 70)), numbers(drawn(64, 64, 70)), FixedWidth(24, np.arange(210, dtype=np.uint8), 70))
    block = PackedStruct(fields, 70)
    codec = PackedStructCodec((1, 8, 3), Flat(96))
    assert through_chunks(codec, block, [64, 6]) == plain(block)
    assert through_values(codec, block) == plain(block)
    assert through_block(codec, block) == plain(block)


def test_packed_structs_with_strings_round_trip() -> None:
    fields = (texts(WORDS, skip=2), numbers(drawn(16, 16, 6)), texts(WORDS[::-1], width=8), nested(True, 32).items)
    fields = (*fields[:3], FixedSizeList(3, numbers(drawn(32, 32, 18)), None, 6))
    block = PackedStruct(fields, 6)
    codec = VariablePackedStruct(
        (
            PackedField(0, 4, General("lz4", Variable(32))),
            PackedField(2, 0, Flat(16)),
            PackedField(0, 8, Variable(64)),
            PackedField(12, 0, FixedSizeListCodec(3, False, Flat(32))),
        )
    )
    assert through_values(codec, block) == plain(block)
    assert isinstance(codec.encode_values(block), VariableWidth)


@pytest.mark.parametrize(
    ("codec", "method"),
    [
        (InlineBitpacking(8), "encode_values"),
        (OutOfLineBitpacking(8, 2), "encode_values"),
        (Rle(8), "encode_values"),
        (ByteStreamSplit(32), "encode_values"),
        (Constant(), "encode_values"),
        (Constant(), "encode_block"),
        (VariablePackedStruct(()), "encode_block"),
        (FixedSizeListCodec(2, True, Flat(8)), "encode_block"),
    ],
)
def test_unsupported_block_forms_are_rejected(codec: object, method: str) -> None:
    with pytest.raises(UnsupportedError):
        getattr(codec, method)(numbers(np.zeros(2, np.uint8)))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 700)), max_size=12), st.data())
def test_levels_round_trip(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    levels = np.repeat(np.array([r for r, _ in runs], np.uint8), [n for _, n in runs])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(levels)), max_size=4)))
    ends = np.array([*cuts, len(levels)], np.int64)
    encoding, buffer, byte_ends = compress_levels(levels, ends, 3, GRAMMARS["2.2"].levels)
    counts = np.diff(ends, prepend=0)
    decoded = codec_from_proto(encoding).decode_blocks(chunks_of([(buffer, byte_ends)], counts))
    assert isinstance(decoded, FixedWidth)
    assert decoded.bits == 16
    assert decoded.data.view("<u2").tolist() == levels.tolist()


def test_levels_with_long_runs_use_rle_and_others_are_bitpacked() -> None:
    mixed = np.random.default_rng(0).integers(0, 2, 4096).astype(np.uint8)
    allowed, ends = GRAMMARS["2.2"].levels, np.array([4096])
    assert compress_levels(np.zeros(4096, np.uint8), ends, 1, allowed)[0].HasField("rle")
    assert compress_levels(mixed, ends, 1, allowed)[0].HasField("out_of_line_bitpacking")
    assert len(compress_levels(mixed, ends, 1, allowed)[1]) == 512


def test_levels_of_2_1_are_never_run_length_encoded() -> None:
    levels = np.zeros(4096, np.uint8)
    encoding, buffer, _ = compress_levels(levels, np.array([4096]), 1, GRAMMARS["2.1"].levels)
    assert encoding.HasField("out_of_line_bitpacking")
    assert len(buffer) == 512
