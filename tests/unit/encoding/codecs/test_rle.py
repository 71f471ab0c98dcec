from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.rle import Rle
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.numbers import rle as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
BITS = [8, 16, 32, 64]


def words(values: list[int], bits: int) -> bytes:
    return np.array(values, f"<u{bits // 8}").tobytes()


def block(values: list[int], lengths: list[int], bits: int) -> bytes:
    return struct.pack("<Q", len(values) * bits // 8) + words(values, bits) + bytes(lengths)


@pytest.mark.parametrize("bits", BITS)
def test_runs_of_all_chunks_are_expanded(make_chunks: Make, bits: int) -> None:
    chunks = make_chunks([[words([7, 8], bits), b"\x03\x02"], [words([9], bits), b"\xff"]], [5, 255])
    decoded = Rle(bits).decode_chunks(chunks)
    assert decoded.data.view(f"<u{bits // 8}").tolist() == [7] * 3 + [8] * 2 + [9] * 255


def test_runs_beyond_the_count_are_ignored(make_chunks: Make) -> None:
    decoded = Rle(8).decode_chunks(make_chunks([[b"abc", b"\x02\x04\x09"], [b"d", b"\x01"]], [3, 1]))
    assert decoded.data.tobytes() == b"aabd"


def test_runs_of_length_zero_are_ignored(make_chunks: Make) -> None:
    assert Rle(8).decode_chunks(make_chunks([[b"abc", b"\x00\x02\x00"]], [2])).data.tobytes() == b"bb"


@pytest.mark.parametrize("bits", BITS)
def test_blocks_store_values_and_lengths_in_one_buffer(make_chunks: Make, bits: int) -> None:
    first, second = block([1, 2], [2, 1], bits), block([3], [4], bits)
    dtype = f"<u{bits // 8}"
    assert Rle(bits).decode_block(np.frombuffer(first, np.uint8), 3).data.view(dtype).tolist() == [1, 1, 2]
    decoded = Rle(bits).decode_blocks(make_chunks([[first], [second]], [3, 4]))
    assert decoded.data.view(dtype).tolist() == [1, 1, 2, 3, 3, 3, 3]


def test_missing_runs_are_corrupt(make_chunks: Make) -> None:
    for buffers, count in (([b"ab", b"\x02\x02"], 5), ([b"", b""], 1), ([b"a", b"\x00"], 1)):
        with pytest.raises(CorruptError):
            Rle(8).decode_chunks(make_chunks([buffers], [count]))


def test_values_and_lengths_must_have_equal_counts(make_chunks: Make) -> None:
    for buffers in ([b"ab", b"\x02"], [b"a", b"\x02\x01"]):
        with pytest.raises(CorruptError, match="differ"):
            Rle(8).decode_chunks(make_chunks([buffers], [1]))


def test_broken_blocks_are_corrupt() -> None:
    whole = block([1, 2, 3], [1, 1, 1], 16)
    for size in range(len(whole)):
        with pytest.raises(CorruptError):
            Rle(16).decode_block(np.frombuffer(whole[:size], np.uint8), 3)
    for head in (0, 5, 7, 2**63 + 6, 2**64 - 1):
        with pytest.raises(CorruptError):
            Rle(16).decode_block(np.frombuffer(struct.pack("<Q", head) + whole[8:], np.uint8), 3)


def test_impossible_counts_are_rejected_before_allocation() -> None:
    with pytest.raises(CorruptError):
        Rle(64).decode_block(np.frombuffer(block([1], [255], 64), np.uint8), 1 << 50)


def test_rle_descriptions_are_validated() -> None:
    def describe(bits: int, length_bits: int) -> pb.CompressiveEncoding:
        parts = [pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=b)) for b in (bits, length_bits)]
        return pb.CompressiveEncoding(rle=pb.Rle(values=parts[0], run_lengths=parts[1]))

    assert codec_from_proto(describe(32, 8)) == Rle(32)
    assert codec_from_proto(describe(32, 16)) == Rle(32, 16)
    for bits, length_bits in ((32, 64), (128, 8), (1, 8)):
        with pytest.raises(UnsupportedError):
            codec_from_proto(describe(bits, length_bits))
    with pytest.raises(UnsupportedError):
        codec_from_proto(pb.CompressiveEncoding(rle=pb.Rle()))


runs = st.lists(st.tuples(st.integers(0, 255), st.sampled_from([0, 1, 2, 9, 255])), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(runs, st.integers(-300, 20)), max_size=4), st.sampled_from(BITS))
def test_expand_runs_equals_its_reference(
    make_chunks: Make, parts: list[tuple[list[tuple[int, int]], int]], bits: int
) -> None:
    counts = [max(sum(n for _, n in part) + extra, 0) for part, extra in parts]
    buffers = [[words([v for v, _ in part], bits), bytes(n for _, n in part)] for part, _ in parts]
    chunks = make_chunks(buffers, counts)
    if not parts:
        return
    results = []
    for function in (kernels.expand_runs, kernels.expand_runs_reference):
        out = np.zeros(sum(counts) * bits // 8 + kernels.SLACK, np.uint8)
        ends = np.cumsum(chunks.counts)
        status = function(chunks.data, chunks.starts[0], chunks.starts[1], chunks.sizes[1], ends, bits // 8, out)
        results.append((status, out[: -kernels.SLACK].tolist() if status == 0 else None))
    assert results[0] == results[1]
