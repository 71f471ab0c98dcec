from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import FixedWidth, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.general import STEP, General
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.codecs.rle import Rle
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.pages import lz4 as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]
SCHEMES = ["lz4", "zstd"]


def compress(raw: bytes, scheme: str) -> bytes:
    if scheme == "lz4":
        return struct.pack("<I", len(raw)) + pa.Codec("lz4_raw").compress(raw, asbytes=True)
    return struct.pack("<Q", len(raw)) + pa.Codec("zstd").compress(raw, asbytes=True)


def variable(values: Sequence[bytes]) -> VariableWidth:
    return VariableWidth(np.cumsum([0, *map(len, values)]).astype(np.int32), np.frombuffer(b"".join(values), np.uint8))


def array(buffer: bytes) -> np.ndarray:
    return np.frombuffer(buffer, np.uint8)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_chunks_are_decompressed(make_chunks: Make, scheme: str) -> None:
    parts = [np.arange(1024, dtype="<u4").tobytes(), bytes(4096), b""]
    chunks = make_chunks([[compress(p, scheme)] for p in parts], [1024, 1024, 0])
    assert General(scheme, Flat(32)).decode_chunks(chunks).data.tobytes() == b"".join(parts)
    assert General(scheme, Flat(32)).decode_blocks(chunks).data.tobytes() == b"".join(parts)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_only_the_first_buffer_is_compressed(make_chunks: Make, scheme: str) -> None:
    chunks = make_chunks([[compress(b"ab", scheme), b"\x02\x03"], [compress(b"c", scheme), b"\x01"]], [5, 1])
    assert General(scheme, Rle(8)).decode_chunks(chunks).data.tobytes() == b"aabbbc"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_blocks_are_decompressed(scheme: str) -> None:
    assert General(scheme, Flat(16)).decode_block(array(compress(b"abcd", scheme)), 2).data.tobytes() == b"abcd"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_values_are_decompressed_one_by_one(scheme: str) -> None:
    raw = [b"one", b"", b"\x00" * 5000, b"two"]
    values = variable([compress(v, scheme) if v else b"" for v in raw])
    decoded = General(scheme, Variable(32)).decode_values(values)
    ends = decoded.offsets.tolist()
    assert [decoded.data[a:b].tobytes() for a, b in pairwise(ends)] == raw


def test_bare_zstd_frames_are_read() -> None:
    raw = bytes(range(256)) * 9000
    frame = array(pa.Codec("zstd").compress(raw, asbytes=True))
    assert General("zstd", Flat(8)).decode_block(frame, len(raw)).data.tobytes() == raw


def test_high_zstd_ratios_are_accepted_if_the_data_decompresses() -> None:
    raw = bytes(8 * STEP)
    buffer = array(compress(raw, "zstd"))
    assert len(buffer) * 256 + STEP < len(raw)
    assert General("zstd", Flat(8)).decode_block(buffer, len(raw)).count == len(raw)
    for claim in (len(raw) - 1, len(raw) + 1, 1 << 62):
        changed = struct.pack("<Q", claim) + buffer[8:].tobytes()
        with pytest.raises(CorruptError):
            General("zstd", Flat(8)).decode_block(array(changed), 1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_wrong_raw_length_is_corrupt(scheme: str) -> None:
    buffer = compress(b"hello hello hello hello hello", scheme)
    head = 4 if scheme == "lz4" else 8
    for claim in (0, 28, 30, 2 ** (8 * head - 1)):
        changed = claim.to_bytes(head, "little") + buffer[head:]
        with pytest.raises(CorruptError):
            General(scheme, Flat(8)).decode_block(array(changed), 29)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_cut_and_changed_buffers_are_corrupt_or_decode(scheme: str) -> None:
    whole = compress(b"abcabcabcabcabcabcXYZ" * 20, scheme)
    for size in range(len(whole)):
        with pytest.raises(CorruptError):
            General(scheme, Flat(8)).decode_block(array(whole[:size]), 420)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 0x5A
        try:
            General(scheme, Flat(8)).decode_block(array(bytes(changed)), 420)
        except CorruptError:
            continue


def test_per_value_compression_requires_valid_variable_width_offsets() -> None:
    codec = General("lz4", Variable(32))
    with pytest.raises(CorruptError):
        codec.decode_values(VariableWidth(np.array([0, 9], np.int32), np.zeros(3, np.uint8)))
    with pytest.raises(CorruptError):
        codec.decode_values(FixedWidth(8, np.zeros(3, np.uint8), 3))


def test_general_compression_descriptions_are_validated() -> None:
    def describe(scheme: int) -> Codec:
        flat = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=32))
        general = pb.General(compression=pb.BufferCompression(scheme=scheme), values=flat)
        return codec_from_proto(pb.CompressiveEncoding(general=general))

    assert describe(1) == General("lz4", Flat(32))
    assert describe(2) == General("zstd", Flat(32))
    for scheme in (0, 7):
        with pytest.raises(UnsupportedError):
            describe(scheme)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(st.sampled_from([b"ab", b"c", b"abcabcabc", b"\0" * 40]), max_size=40).map(b"".join), max_size=4),
    st.tuples(st.integers(0, 400), st.integers(0, 255)),
    st.integers(-1, 1),
)
def test_decompress_blocks_equals_its_reference(
    make_chunks: Make, parts: list[bytes], change: tuple[int, int], claim: int
) -> None:
    blocks = [bytearray(pa.Codec("lz4_raw").compress(p, asbytes=True)) for p in parts]
    if blocks and change[0] < len(blocks[0]):
        blocks[0][change[0]] = change[1]
    chunks = make_chunks([[bytes(b)] for b in blocks], [0] * len(blocks))
    ends = np.cumsum([max(len(p) + claim, 0) for p in parts], dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    results = []
    for function in (kernels.decompress_blocks, kernels.decompress_blocks_reference):
        out = np.zeros(total + kernels.SLACK, np.uint8)
        status = function(chunks.data, chunks.starts[0], chunks.sizes[0], ends, out)
        results.append((status, out[:total].tobytes() if status == 0 else None))
    assert results[0] == results[1]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.binary(max_size=30), max_size=3), st.integers(0, 60))
def test_decompress_blocks_equals_its_reference_on_any_bytes(make_chunks: Make, parts: list[bytes], room: int) -> None:
    chunks = make_chunks([[p] for p in parts], [0] * len(parts))
    ends = np.cumsum([room] * len(parts), dtype=np.int64)
    results = []
    for function in (kernels.decompress_blocks, kernels.decompress_blocks_reference):
        out = np.zeros(room * len(parts) + kernels.SLACK, np.uint8)
        status = function(chunks.data, chunks.starts[0], chunks.sizes[0], ends, out)
        results.append((status, out[: room * len(parts)].tobytes() if status == 0 else None))
    assert results[0] == results[1]


@pytest.mark.parametrize("has_length", [True, False])
def test_zstd_frames_with_and_without_a_content_size_are_read(has_length: bool) -> None:
    raw = bytes(range(200)) * 9
    compressor = zstandard.ZstdCompressor(write_content_size=has_length).compressobj()
    frame = compressor.compress(raw) + compressor.flush()
    for head, content in ((len(raw), raw), (len(raw) - 1, None), (len(raw) + 1, None)):
        buffer = array(struct.pack("<Q", head) + frame)
        if content is not None:
            assert General("zstd", Flat(8)).decode_block(buffer, head).data.tobytes() == content
        else:
            with pytest.raises(CorruptError):
                General("zstd", Flat(8)).decode_block(buffer, head)
    two = array(struct.pack("<Q", len(raw)) + frame + b"more")
    with pytest.raises(CorruptError):
        General("zstd", Flat(8)).decode_block(two, len(raw))
