from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.numbers import bitpacking as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
BITS = [8, 16, 32, 64]


def pack(values: NDArray[np.unsignedinteger], width: int) -> bytes:
    """1024 values as one FastLanes block."""
    bits = values.dtype.itemsize * 8
    lanes = 1024 // bits
    words = np.zeros((width, lanes), values.dtype)
    for lane in range(lanes):
        joined = 0
        for row in range(bits):
            place = [0, 4, 2, 6, 1, 5, 3, 7][row // 8] * 16 + (row % 8) * 128 + lane
            joined |= int(values[place]) << (row * width)
        for j in range(width):
            words[j, lane] = (joined >> (j * bits)) & ((1 << bits) - 1)
    return words.tobytes()


def draw(bits: int, width: int, count: int, seed: int = 0) -> NDArray[np.unsignedinteger]:
    raw = np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64, endpoint=False)
    return (raw >> np.uint64(64 - width) if width else raw * np.uint64(0)).astype(f"u{bits // 8}")


def padded(values: NDArray[np.unsignedinteger]) -> NDArray[np.unsignedinteger]:
    return np.concatenate([values, np.zeros(-len(values) % 1024, values.dtype)])


def inline(values: NDArray[np.unsignedinteger], width: int) -> bytes:
    blocks = padded(values).reshape(-1, 1024)
    word = np.array([width], values.dtype).tobytes()
    return b"".join(word + pack(block, width) for block in blocks)


@pytest.mark.parametrize("bits", BITS)
def test_every_bit_width_is_unpacked(make_chunks: Make, bits: int) -> None:
    for width in range(bits + 1):
        values = draw(bits, width, 1024)
        block = InlineBitpacking(bits).decode_chunks(make_chunks([[inline(values, width)]], [1024]))
        assert block.data.view(values.dtype).tolist() == values.tolist(), width


@pytest.mark.parametrize("bits", BITS)
def test_chunks_may_have_different_widths_and_end_early(make_chunks: Make, bits: int) -> None:
    parts = [draw(bits, 3, 1024), draw(bits, 0, 1024), draw(bits, bits, 2500), draw(bits, 5, 7)]
    buffers = [[inline(p, w)] for p, w in zip(parts, [3, 0, bits, 5], strict=True)]
    block = InlineBitpacking(bits).decode_chunks(make_chunks(buffers, [len(p) for p in parts]))
    assert block.bits == bits
    assert block.data.view(parts[0].dtype).tolist() == np.concatenate(parts).tolist()


@pytest.mark.parametrize("bits", BITS)
def test_a_bitpacked_tail_at_the_end_of_the_buffer_is_raw(bits: int) -> None:
    values = draw(bits, 3, 1024 + 20)
    buffer = pack(values[:1024], 3) + values[1024:].tobytes()
    block = OutOfLineBitpacking(bits, 3).decode_block(np.frombuffer(buffer, np.uint8), 1044)
    assert block.data.view(values.dtype).tolist() == values.tolist()


@pytest.mark.parametrize("bits", BITS)
def test_out_of_line_values_without_bits_are_zeros(make_chunks: Make, bits: int) -> None:
    codec = OutOfLineBitpacking(bits, 0)
    assert OutOfLineBitpacking.from_proto(codec.to_proto().out_of_line_bitpacking) == codec
    block = codec.decode_chunks(make_chunks([[b""], [b""]], [1024, 701]))
    assert (block.count, block.data.tobytes()) == (1725, bytes(1725 * bits // 8))
    with pytest.raises(CorruptError, match="value count exceeds"):
        codec.decode_block(np.empty(0, np.uint8), 1 << 40)


@pytest.mark.parametrize("bits", BITS)
def test_a_bitpacked_tail_is_otherwise_a_full_block(make_chunks: Make, bits: int) -> None:
    values = draw(bits, 3, 1024 + 900)
    buffer = b"".join(pack(b, 3) for b in padded(values).reshape(-1, 1024))
    chunks = make_chunks([[buffer], [values[:2].tobytes()]], [1924, 2])
    block = OutOfLineBitpacking(bits, 3).decode_blocks(chunks)
    assert block.data.view(values.dtype).tolist() == [*values.tolist(), *values[:2].tolist()]


def test_a_width_wider_than_its_word_is_corrupt() -> None:
    with pytest.raises(CorruptError, match="wider"):
        InlineBitpacking(8).decode_block(np.full(2000, 9, np.uint8), 1)


@pytest.mark.parametrize("bits", BITS)
def test_cut_blocks_are_corrupt(bits: int) -> None:
    whole = np.frombuffer(inline(draw(bits, 3, 1500), 3), np.uint8)
    for size in [0, bits // 8, len(whole) // 2, len(whole) - 1]:
        with pytest.raises(CorruptError):
            InlineBitpacking(bits).decode_block(whole[:size], 1500)
        with pytest.raises(CorruptError):
            OutOfLineBitpacking(bits, 3).decode_block(whole[: min(size, 700)], 1500)


def test_impossible_counts_are_rejected_before_allocation() -> None:
    with pytest.raises(CorruptError):
        InlineBitpacking(64).decode_block(np.zeros(64, np.uint8), 1 << 50)
    with pytest.raises(CorruptError):
        OutOfLineBitpacking(64, 1).decode_block(np.zeros(64, np.uint8), 1 << 50)


def test_bitpacking_descriptions_are_validated() -> None:
    def out_of_line(bits: int, width: int) -> pb.CompressiveEncoding:
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=width))
        message = pb.OutOfLineBitpacking(uncompressed_bits_per_value=bits, values=values)
        return pb.CompressiveEncoding(out_of_line_bitpacking=message)

    assert codec_from_proto(out_of_line(32, 5)) == OutOfLineBitpacking(32, 5)
    for width in (33, 64):
        with pytest.raises(CorruptError):
            codec_from_proto(out_of_line(32, width))
    with pytest.raises(UnsupportedError):
        codec_from_proto(out_of_line(24, 5))
    nested = pb.OutOfLineBitpacking(uncompressed_bits_per_value=32, values=out_of_line(32, 5))
    with pytest.raises(UnsupportedError, match="nested"):
        codec_from_proto(pb.CompressiveEncoding(out_of_line_bitpacking=nested))
    with pytest.raises(UnsupportedError):
        InlineBitpacking(8).decode_values(InlineBitpacking(8).decode_block(np.zeros(1, np.uint8), 1))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(BITS), st.integers(0, 64), st.lists(st.integers(0, 2100), max_size=3), st.integers(-9, 9))
def test_kernels_equal_their_references(bits: int, width: int, counts: list[int], slack: int) -> None:
    width = min(width, bits)
    parts = [draw(bits, width, n, n) for n in counts]
    dtype = np.dtype(f"u{bits // 8}")
    for kernel, reference, encode, extra in (
        (kernels.unpack_inline, kernels.unpack_inline_reference, lambda p: inline(p, width), ()),
        (
            kernels.unpack_fixed,
            kernels.unpack_fixed_reference,
            lambda p: b"".join(pack(b, max(width, 1)) for b in padded(p).reshape(-1, 1024)),
            (max(width, 1),),
        ),
    ):
        buffers = [encode(p) for p in parts]
        data = np.frombuffer(b"".join(buffers), np.uint8)
        sizes = np.array([len(b) for b in buffers], np.int64)
        starts = np.cumsum(sizes) - sizes
        sizes = np.maximum(sizes + min(slack, 0), 0)
        results = []
        for function in (kernel, reference):
            out, scratch = np.zeros(sum(counts), dtype), np.zeros(1024, dtype)
            status = function(data, starts, sizes, np.array(counts, np.int64), *extra, out, scratch)
            results.append((status, out.tolist() if status == 0 else None))
        assert results[0] == results[1]
