from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.texts import variable as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]


def chunk(values: Sequence[bytes], width: int) -> bytes:
    ends = np.cumsum([0, *map(len, values)]) + (len(values) + 1) * width
    buffer = ends.astype(f"<u{width}").tobytes() + b"".join(values)
    return buffer + b"\x48" * (-len(buffer) % width)


def block(values: Sequence[bytes], width: int) -> bytes:
    ends = np.cumsum([0, *map(len, values)]).astype(f"<u{width}").tobytes()
    head = struct.pack("<II" if width == 4 else "<QQ", width * 8, 2 * width + len(ends))
    return head + ends + b"".join(values)


def values_of(decoded: VariableWidth) -> list[bytes]:
    ends = decoded.offsets.tolist()
    return [decoded.data[a:b].tobytes() for a, b in pairwise(ends)]


@pytest.mark.parametrize("width", [4, 8])
def test_chunks_are_joined_and_their_offsets_rebased(make_chunks: Make, width: int) -> None:
    parts = [[b"a", b"", b"bcd"], [], [b"efgh"]]
    chunks = make_chunks([[chunk(p, width)] for p in parts], [3, 0, 1])
    decoded = Variable(width * 8).decode_chunks(chunks)
    assert decoded.offsets.dtype == np.int32
    assert decoded.offsets.tolist() == [0, 1, 1, 4, 8]
    assert decoded.data.tobytes() == b"abcdefgh"


def test_no_chunks_decode_to_a_single_offset(make_chunks: Make) -> None:
    assert Variable(32).decode_chunks(make_chunks([], [])).offsets.tolist() == [0]


@pytest.mark.parametrize("width", [4, 8])
def test_blocks_are_views(width: int) -> None:
    buffer = np.frombuffer(block([b"xy", b"", b"z"], width), np.uint8)
    decoded = Variable(32).decode_block(buffer, 3)
    assert values_of(decoded) == [b"xy", b"", b"z"]
    assert np.shares_memory(decoded.data, buffer)


@pytest.mark.parametrize("width", [4, 8])
def test_blocks_of_old_writers_are_read(width: int) -> None:
    new = block([b"xy", b"z"], width)
    word = "<I" if width == 4 else "<Q"
    old = bytes([width * 8]) + struct.pack(word, 2 | (1 << 16)) + struct.pack(word, 1 + 2 * width + 3 * width)
    assert values_of(Variable(32).decode_block(np.frombuffer(old + new[2 * width :], np.uint8), 2)) == [b"xy", b"z"]


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("offsets", [[9, 8, 9], [8, 12, 11], [12, 13, 99], [12, 2**32 - 1, 14], [0, 1, 2]])
def test_bad_chunk_offsets_are_corrupt(make_chunks: Make, width: int, offsets: list[int]) -> None:
    buffer = np.array(offsets, f"<u{width}").tobytes() + b"abc"
    with pytest.raises(CorruptError):
        Variable(width * 8).decode_chunks(make_chunks([[buffer]], [2]))


def test_offsets_beyond_63_bits_are_corrupt(make_chunks: Make) -> None:
    buffer = np.array([16, 2**64 - 1], "<u8").tobytes()
    with pytest.raises(CorruptError):
        Variable(64).decode_chunks(make_chunks([[buffer]], [1]))


def test_impossible_counts_are_rejected(make_chunks: Make) -> None:
    for count in (3, 1 << 60, -1):
        with pytest.raises(CorruptError):
            Variable(32).decode_chunks(make_chunks([[b"\0" * 12]], [count]))
        with pytest.raises(CorruptError):
            Variable(32).decode_block(np.frombuffer(block([b"a", b"b"], 4), np.uint8), count)


def test_cut_or_changed_blocks_are_corrupt_or_hold_bytes() -> None:
    whole = block([b"abc", b"defg"], 4)
    for size in range(len(whole)):
        with pytest.raises(CorruptError):
            Variable(32).decode_block(np.frombuffer(whole[:size], np.uint8), 2)
    for place in range(20):
        for value in (0, 1, 127, 255):
            changed = bytearray(whole)
            changed[place] = value
            try:
                decoded = Variable(32).decode_block(np.frombuffer(bytes(changed), np.uint8), 2)
            except CorruptError:
                continue
            assert decoded.offsets[-1] <= len(decoded.data)


def test_single_values_pass_through_with_valid_offsets() -> None:
    values = VariableWidth(np.array([0, 2, 3], np.int32), np.zeros(3, np.uint8))
    assert Variable(32).decode_values(values) is values
    for bad in ([0, 4], [2, 1], [-1, 1]):
        with pytest.raises(CorruptError):
            Variable(32).decode_values(VariableWidth(np.array(bad, np.int64), np.zeros(3, np.uint8)))
    with pytest.raises(CorruptError):
        Variable(32).decode_values(FixedWidth(8, np.zeros(3, np.uint8), 3))


def test_variable_width_descriptions_are_validated() -> None:
    def describe(bits: int, **more: pb.BufferCompression) -> pb.CompressiveEncoding:
        offsets = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))
        return pb.CompressiveEncoding(variable=pb.Variable(offsets=offsets, **more))

    assert codec_from_proto(describe(64)) == Variable(64)
    with pytest.raises(UnsupportedError):
        codec_from_proto(describe(16))
    with pytest.raises(UnsupportedError):
        codec_from_proto(describe(32, values=pb.BufferCompression(scheme=1)))
    packed = pb.CompressiveEncoding(inline_bitpacking=pb.InlineBitpacking(uncompressed_bits_per_value=32))
    assert codec_from_proto(pb.CompressiveEncoding(variable=pb.Variable(offsets=packed))).num_buffers == 2
    narrow = pb.CompressiveEncoding(range=pb.Range(uncompressed_bits_per_value=16))
    with pytest.raises(UnsupportedError):
        codec_from_proto(pb.CompressiveEncoding(variable=pb.Variable(offsets=narrow)))


@settings(deadline=None)
@given(
    st.lists(st.lists(st.binary(max_size=9), max_size=5), max_size=5),
    st.sampled_from([4, 8]),
    st.tuples(st.integers(0, 200), st.integers(0, 255)),
)
def test_join_variable_equals_its_reference(
    make_chunks: Make, parts: list[list[bytes]], width: int, change: tuple[int, int]
) -> None:
    buffers = [chunk(p, width) for p in parts]
    if buffers and change[0] < len(buffers[0]):
        changed = bytearray(buffers[0])
        changed[change[0]] = change[1]
        buffers[0] = bytes(changed)
    chunks = make_chunks([[b] for b in buffers], [len(p) for p in parts])
    results = []
    for function in (kernels.join_variable, kernels.join_variable_reference):
        offsets = np.zeros(sum(map(len, parts)) + 1, np.int32)
        out = np.zeros(sum(map(len, buffers)), np.uint8)
        status = function(chunks.data, chunks.starts[0], chunks.sizes[0], chunks.counts, width, offsets, out)
        results.append((status, (offsets.tolist(), out[: offsets[-1]].tobytes()) if status == 0 else None))
    assert results[0] == results[1]


@given(st.lists(st.integers(-2, 6), max_size=5), st.integers(0, 5))
def test_ascending_within_equals_its_reference(offsets: list[int], size: int) -> None:
    array = np.array(offsets, np.int64)
    assert kernels.ascending_within(array, size) == kernels.ascending_within_reference(array, size)
