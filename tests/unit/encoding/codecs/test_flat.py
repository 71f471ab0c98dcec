from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.flat import Flat, LowFlat
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.numbers import flat as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]


def test_values_of_all_chunks_are_joined_in_order(make_chunks: Make) -> None:
    parts = [np.arange(4, dtype="<u4"), np.arange(10, 13, dtype="<u4")]
    block = Flat(32).decode_chunks(make_chunks([[p.tobytes()] for p in parts], [4, 3]))
    assert block.bits == 32
    assert block.count == 7
    assert block.data.view("<u4").tolist() == [0, 1, 2, 3, 10, 11, 12]


def test_a_single_chunk_is_not_copied(make_chunks: Make) -> None:
    chunks = make_chunks([[b"abcdef"]], [3])
    block = Flat(16).decode_chunks(chunks)
    assert np.shares_memory(block.data, chunks.data)
    assert block.data.tobytes() == b"abcdef"


def test_bits_become_bytes_and_each_chunk_starts_at_a_byte_boundary(make_chunks: Make) -> None:
    block = Flat(1).decode_chunks(make_chunks([[b"\x05\x02"], [b"\x03"]], [10, 2]))
    assert block.data.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_no_chunks_decode_to_no_values(make_chunks: Make) -> None:
    assert Flat(64).decode_chunks(make_chunks([], [])).count == 0


@pytest.mark.parametrize(("bits", "size", "count"), [(32, 7, 2), (1, 1, 9), (8, 0, 1), (64, 8, -1)])
def test_impossible_value_counts_are_rejected(bits: int, size: int, count: int) -> None:
    with pytest.raises(CorruptError):
        Flat(bits).decode_block(np.zeros(size, np.uint8), count)


@pytest.mark.parametrize("bits", [0, 7, 12, 1 << 40])
def test_widths_that_are_not_whole_bytes_are_rejected(bits: int) -> None:
    with pytest.raises(UnsupportedError):
        codec_from_proto(pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits)))


def test_compressed_flat_buffers_are_rejected_by_name() -> None:
    flat = pb.Flat(bits_per_value=32, data=pb.BufferCompression(scheme=2))
    with pytest.raises(UnsupportedError, match="flat"):
        codec_from_proto(pb.CompressiveEncoding(flat=flat))


def test_an_encoding_without_a_kind_is_corrupt() -> None:
    with pytest.raises(CorruptError):
        codec_from_proto(pb.CompressiveEncoding())


def test_single_values_pass_through() -> None:
    values = FixedWidth(16, np.arange(6, dtype=np.uint8), 3)
    assert Flat(16).decode_values(values) is values
    with pytest.raises(CorruptError):
        Flat(32).decode_values(values)
    with pytest.raises(CorruptError):
        Flat(16).decode_values(FixedWidth(16, np.arange(5, dtype=np.uint8), 3))


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_join_bytes_equals_its_reference(make_chunks: Make, parts: list[bytes]) -> None:
    chunks = make_chunks([[p] for p in parts], [0] * len(parts))
    out, expected = (np.zeros(sum(map(len, parts)), np.uint8) for _ in range(2))
    kernels.join_bytes(chunks.data, chunks.starts[0], chunks.sizes[0], out)
    kernels.join_bytes_reference(chunks.data, chunks.starts[0], chunks.sizes[0], expected)
    assert out.tolist() == expected.tolist()


@given(st.lists(st.tuples(st.binary(max_size=20), st.integers(0, 160)), max_size=6))
def test_spread_bits_equals_its_reference(make_chunks: Make, parts: list[tuple[bytes, int]]) -> None:
    counts = [min(n, 8 * len(p)) for p, n in parts]
    chunks = make_chunks([[p] for p, _ in parts], counts)
    out, expected = (np.zeros(sum(counts), np.uint8) for _ in range(2))
    kernels.spread_bits(chunks.data, chunks.starts[0], chunks.counts, out)
    kernels.spread_bits_reference(chunks.data, chunks.starts[0], chunks.counts, expected)
    assert out.tolist() == expected.tolist()


@given(
    st.lists(st.lists(st.integers(-(2**64), 2**64) | st.integers(-5, 5), max_size=4), max_size=4),
    st.sampled_from([2, 4]),
)
def test_join_low_words_equals_its_reference(numbers: list[list[int]], words: int) -> None:
    parts = [b"".join(n.to_bytes(8 * words, "little", signed=True) for n in part) for part in numbers]
    counts = np.array([len(part) for part in numbers], np.int64)
    starts = np.cumsum([3, *map(len, parts)])[:-1].astype(np.int64)
    data = np.frombuffer(b"___" + b"".join(parts), np.uint8)
    out, expected = np.zeros(counts.sum(), np.int64), np.zeros(counts.sum(), np.int64)

    fits = kernels.join_low_words(data, starts, counts, words, out)

    assert fits == kernels.join_low_words_reference(data, starts, counts, words, expected)
    assert out.tolist() == expected.tolist()


@given(
    st.lists(st.integers(-(2**64), 2**64) | st.integers(-5, 5), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=9),
    st.sampled_from([2, 4]),
)
def test_gather_low_words_equals_its_reference(numbers: list[int], places: list[int], words: int) -> None:
    data = np.frombuffer(b"_" + b"".join(n.to_bytes(8 * words, "little", signed=True) for n in numbers), np.uint8)
    starts = np.array([1 + place % len(numbers) * 8 * words for place in places], np.int64)
    out, expected = np.zeros(len(starts), np.int64), np.zeros(len(starts), np.int64)

    fits = kernels.gather_low_words(data, starts, words, out)

    assert fits == kernels.gather_low_words_reference(data, starts, words, expected)
    assert out.tolist() == expected.tolist()


def test_taken_numbers_are_low_words_only_if_all_fit() -> None:
    numbers = (5, -7, 2**63, -(2**63))
    data = np.frombuffer(b"".join(n.to_bytes(16, "little", signed=True) for n in numbers), np.uint8)
    codec = LowFlat(Flat(128))

    fitting = codec.take(data, np.array([48, 0, 16], np.int64))
    other = codec.take(data, np.array([32, 16], np.int64))

    assert fitting.bits == 64
    assert fitting.data.view("<i8").tolist() == [-(2**63), 5, -7]
    assert other.bits == 128
    assert other.data.tobytes() == data[32:48].tobytes() + data[16:32].tobytes()


def test_low_words_are_returned_only_if_all_values_fit(make_chunks: Make) -> None:
    small, large = (b"".join(n.to_bytes(16, "little", signed=True) for n in (-1, n)) for n in (7, 2**63))
    codec = LowFlat(Flat(128))

    fitting = codec.decode_chunks(make_chunks([[small], [small]], [2, 2]))
    other = codec.decode_chunks(make_chunks([[small], [large]], [2, 2]))

    assert fitting.bits == 64
    assert fitting.data.view("<i8").tolist() == [-1, 7, -1, 7]
    assert other.bits == 128
    with pytest.raises(CorruptError):
        codec.decode_chunks(make_chunks([[small]], [3]))
