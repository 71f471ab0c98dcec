from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.encoding.write.samples import BITS, SIZES, drawn, flags, numbers, plain, read_back, texts

from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.write.codecs.compress import (
    compress_block,
    compress_mini_block,
    compress_values,
    dictionary_if_smaller,
)
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.errors import UnsupportedError

RNG = np.random.default_rng(1)
SENTENCES = [b"the quick brown fox %d jumps over %d lazy dogs" % (i, i * 7919 % 1000) for i in range(2000)]


def kind(block: Block, choice: EncodingOptions | None = None) -> str:
    """Return the name of the chosen encoding after checking the round trip."""
    values = compress_mini_block(block, choice or EncodingOptions())
    assert read_back(values) == plain(block)
    names, encoding = [], values.encoding
    while True:
        name = encoding.WhichOneof("compression")
        assert name is not None
        names.append(name)
        if name not in ("general", "fsst"):
            return " ".join(names)
        encoding = getattr(encoding, name).values


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("count", SIZES)
def test_numbers_of_every_width_and_count_round_trip(bits: int, count: int) -> None:
    for width in (0, 1, bits - 1, bits):
        kind(numbers(drawn(bits, width, count, count)))


def test_the_encoding_of_numbers_is_the_smallest() -> None:
    assert kind(numbers(drawn(32, 32, 5000))) == "flat"
    assert kind(numbers(drawn(32, 5, 5000))) == "inline_bitpacking"
    assert kind(numbers(np.repeat(drawn(32, 32, 500), 10))) == "rle"
    assert kind(numbers(np.repeat(drawn(32, 2, 2500), 2))) == "inline_bitpacking"
    assert kind(numbers(drawn(32, 5, 10))) == "flat"
    assert kind(flags(RNG.integers(0, 2, 5000))) == "flat"
    assert kind(FixedWidth(128, np.arange(16 * 300, dtype=np.uint8), 300)) == "flat"


def test_few_values_in_a_chunk_are_never_packed() -> None:
    block = numbers(drawn(32, 5, 5000))
    values = compress_mini_block(block, EncodingOptions(), 512)
    assert values.encoding.HasField("flat")
    assert values.counts.max() == 512
    assert read_back(values) == plain(block)


def test_plain_chunks_have_four_kibibytes() -> None:
    assert compress_mini_block(numbers(drawn(64, 64, 2000)), EncodingOptions()).counts.tolist() == [512, 512, 512, 464]
    assert compress_mini_block(flags([1] * 5000), EncodingOptions()).counts.tolist() == [4096, 904]
    assert compress_mini_block(numbers(drawn(8, 8, 5000)), EncodingOptions()).counts.tolist() == [4096, 904]
    assert compress_mini_block(numbers(drawn(64, 8, 5000)), EncodingOptions("2.1")).counts.tolist() == [1024] * 4 + [
        904
    ]


def test_run_length_chunks_may_hold_many_values() -> None:
    runs, long_runs = np.repeat(drawn(32, 32, 500), 10), np.repeat(drawn(64, 64, 500), 10)
    for values in (runs, long_runs):
        assert compress_mini_block(numbers(values), EncodingOptions()).counts.tolist() == [4096, 904]
    assert compress_mini_block(numbers(runs), EncodingOptions("2.1")).counts.tolist() == [4096, 904]
    assert compress_mini_block(numbers(long_runs), EncodingOptions("2.1")).counts.tolist() == [2048, 2048, 904]


@pytest.mark.parametrize("block", [numbers(np.zeros(0, np.uint32)), texts([]), flags([])])
def test_an_empty_block_becomes_one_empty_chunk(block: Block) -> None:
    values = compress_mini_block(block, EncodingOptions())
    assert values.counts.tolist() == [0]
    assert read_back(values) == []


def test_field_metadata_selects_the_encoding() -> None:
    wide, runs = numbers(drawn(32, 20, 5000)), numbers(np.repeat(drawn(32, 32, 500), 10))
    assert kind(wide, EncodingOptions(compression="none")) == "flat"
    assert kind(wide, EncodingOptions(compression="zstd")) == "inline_bitpacking"
    assert (
        kind(numbers(np.arange(5000, dtype=np.uint32)), EncodingOptions(compression="zstd"))
        == "general byte_stream_split"
    )
    assert kind(wide, EncodingOptions(compression="lz4", bss="on")) == "general byte_stream_split"
    assert kind(runs, EncodingOptions(rle_threshold=0.01)) == "flat"
    assert kind(runs, EncodingOptions(rle_threshold=0.2)) == "rle"
    assert kind(numbers(drawn(32, 1, 5000)), EncodingOptions(rle_threshold=0.9)) == "inline_bitpacking"
    assert kind(texts(SENTENCES)) == "fsst variable"
    assert kind(texts(SENTENCES), EncodingOptions(compression="none")) == "variable"
    assert kind(texts(SENTENCES), EncodingOptions(compression="zstd")) == "general variable"
    assert kind(texts(SENTENCES), EncodingOptions(is_text=False)) == "variable"
    assert kind(texts(SENTENCES[:20]), EncodingOptions()) == "variable"
    assert kind(texts(SENTENCES[:20]), EncodingOptions(compression="fsst")) == "fsst variable"


def test_incompressible_bytes_are_stored_plain() -> None:
    block = texts([RNG.bytes(20) for _ in range(3000)])
    assert kind(block) == "variable"
    assert kind(block, EncodingOptions(compression="lz4")) == "variable"


def test_values_that_repeat_get_a_dictionary() -> None:
    few = numbers(drawn(64, 64, 20)[RNG.integers(0, 20, 5000)])
    names = texts([SENTENCES[i] for i in RNG.integers(0, 50, 5000)])
    for block in (few, names, FixedWidth(128, np.tile(np.arange(48, dtype=np.uint8), 500), 1500)):
        found = dictionary_if_smaller(block, EncodingOptions())
        assert isinstance(found, Dictionary)
        assert found.items.count <= 50
        assert plain(found) == plain(block)
        values = compress_mini_block(found, EncodingOptions())
        assert values.dictionary is not None
        assert read_back(values) == plain(block)
    assert dictionary_if_smaller(few, EncodingOptions("2.1")) is few
    assert isinstance(dictionary_if_smaller(names, EncodingOptions("2.1")), Dictionary)


@pytest.mark.parametrize(
    "block",
    [
        texts(SENTENCES),
        texts(SENTENCES[:1] * 99),
        numbers(drawn(64, 64, 5000)),
        numbers(drawn(64, 9, 5000)),
        numbers(np.repeat(drawn(64, 64, 50), 100)),
        numbers(drawn(32, 2, 5000)),
        flags([1, 0]),
    ],
)
def test_other_values_are_not_dictionary_encoded(block: Block) -> None:
    assert dictionary_if_smaller(block, EncodingOptions()) is block


def test_field_metadata_may_disable_the_dictionary() -> None:
    names = texts([SENTENCES[i] for i in RNG.integers(0, 50, 5000)])
    assert dictionary_if_smaller(names, EncodingOptions(dict_divisor=1000)) is names
    assert dictionary_if_smaller(names, EncodingOptions(dict_size_ratio=0.001)) is names


def test_a_dictionary_is_compressed_in_2_2_only() -> None:
    items = texts(SENTENCES)
    found = Dictionary(np.arange(2000, dtype=np.uint16), items)
    for choice, name in (
        (EncodingOptions(), "general"),
        (EncodingOptions("2.1"), "variable"),
        (EncodingOptions(dict_compression="none"), "variable"),
        (EncodingOptions(dict_compression="zstd", dict_level=9), "general"),
    ):
        values = compress_mini_block(found, choice)
        assert values.dictionary is not None
        assert values.dictionary.encoding.WhichOneof("compression") == name
        assert read_back(values) == SENTENCES
    with pytest.raises(UnsupportedError):
        compress_mini_block(Dictionary(np.zeros(1, np.uint8), texts([])), EncodingOptions())


@pytest.mark.parametrize("count", [1, 1024, 1025])
@pytest.mark.parametrize("width", [0, 7, 64])
def test_whole_buffers_round_trip(count: int, width: int) -> None:
    block = numbers(drawn(64, width, count))
    encoding, data = compress_block(block, EncodingOptions())
    assert plain(codec_from_proto(encoding).decode_block(data, count)) == plain(block)


def test_whole_buffers_of_every_block_type_round_trip() -> None:
    lists = FixedSizeList(4, numbers(drawn(32, 32, 12)), None, 3)
    for block in (
        texts(SENTENCES, skip=3, width=8),
        flags([1, 0, 1]),
        lists,
        FixedWidth(128, np.zeros(160, np.uint8), 10),
    ):
        encoding, data = compress_block(block, EncodingOptions())
        assert plain(codec_from_proto(encoding).decode_block(data, block.count)) == plain(block)
    with pytest.raises(UnsupportedError):
        compress_block(PackedStruct((), 0), EncodingOptions())


def single(block: Block, choice: EncodingOptions | None = None) -> str:
    """Return the encoding name of single values after checking the round trip."""
    encoding, values = compress_values(block, choice or EncodingOptions())
    assert isinstance(values, (FixedWidth, VariableWidth))
    assert values.count == block.count
    if isinstance(values, VariableWidth) and isinstance(block, VariableWidth):
        assert values.offsets.dtype == block.offsets.dtype
    assert plain(codec_from_proto(encoding).decode_values(values)) == plain(block)
    return str(encoding.WhichOneof("compression"))


def test_single_values_round_trip() -> None:
    large = [b"ab" * 20_000, b"", RNG.bytes(100)]
    lists = FixedSizeList(4, numbers(drawn(32, 32, 12)), np.array([0, 1] * 6, np.uint8), 3)
    assert single(numbers(drawn(64, 64, 10))) == "flat"
    assert single(lists) == "fixed_size_list"
    assert single(texts(SENTENCES, width=8)) == "fsst"
    assert single(texts(SENTENCES), EncodingOptions(compression="none")) == "variable"
    assert single(texts(SENTENCES), EncodingOptions(compression="lz4")) == "general"
    assert single(texts(large, width=8)) == "general"
    assert single(texts([RNG.bytes(40_000)])) == "variable"
    assert single(PackedStruct((lists, texts(large)), 3)) == "variable_packed_struct"
    with pytest.raises(UnsupportedError):
        compress_values(PackedStruct((lists,), 3), EncodingOptions("2.1"))
    with pytest.raises(UnsupportedError):
        compress_values(PackedStruct((flags([0]),), 1), EncodingOptions())


def test_sliced_lists_and_structs_round_trip() -> None:
    inner = FixedSizeList(3, numbers(drawn(32, 32, 6000)), None, 2000)
    lists = FixedSizeList(5, inner, RNG.integers(0, 2, 2000).astype(np.uint8), 400)
    struct = PackedStruct((numbers(drawn(32, 32, 1900)), numbers(drawn(8, 8, 1900))), 1900)
    for block in (lists, struct):
        values = compress_mini_block(block, EncodingOptions(compression="zstd"))
        assert len(values.counts) > 1
        assert read_back(values) == plain(block)
    with pytest.raises(UnsupportedError):
        compress_mini_block(PackedStruct((texts([b""]),), 1), EncodingOptions())
    with pytest.raises(UnsupportedError):
        compress_mini_block(FixedSizeList(1, texts([b""]), None, 1), EncodingOptions())


def test_a_value_too_large_for_a_2_1_chunk_is_rejected() -> None:
    block = texts([b"", RNG.bytes(40_000), b"a"])
    assert kind(block) == "variable"
    with pytest.raises(UnsupportedError):
        compress_mini_block(block, EncodingOptions("2.1"))


columns = st.one_of(
    st.lists(st.binary(max_size=30), max_size=300).map(texts),
    st.lists(st.sampled_from([b"", b"x", b"\xff\xfe" * 40]), max_size=600).map(texts),
    st.tuples(st.sampled_from(BITS), st.integers(0, 64), st.integers(0, 3000), st.integers(1, 300)).map(
        lambda t: numbers(np.repeat(drawn(t[0], min(t[1], t[0]), t[2]), t[3])[: t[2]])
    ),
)
choices = st.builds(
    EncodingOptions,
    version=st.sampled_from(["2.1", "2.2"]),
    compression=st.sampled_from([None, "none", "zstd", "lz4", "fsst"]),
    bss=st.sampled_from(["on", "off", "auto"]),
    rle_threshold=st.sampled_from([None, 0.0, 0.5, 1.0]),
)


@settings(deadline=None, max_examples=60)
@given(columns, choices)
def test_every_selected_encoding_round_trips(block: Any, choice: EncodingOptions) -> None:
    assert read_back(compress_mini_block(dictionary_if_smaller(block, choice), choice)) == plain(block)
    single(block, choice)
