from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codecs.byte_stream_split import ByteStreamSplit
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.numbers import byte_stream_split as kernels
from lance_duck.wire.pb import encodings21_pb2 as pb

Make = Callable[..., Chunks]


def split(values: NDArray[np.generic]) -> bytes:
    return values.view(np.uint8).reshape(len(values), values.itemsize).T.tobytes()


@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
def test_byte_streams_of_each_chunk_are_joined(make_chunks: Make, dtype: str) -> None:
    parts = [np.array([1.5, -2, 3e8], dtype), np.array([], dtype), np.array([7], dtype)]
    bits = parts[0].itemsize * 8
    decoded = ByteStreamSplit(bits).decode_chunks(make_chunks([[split(p)] for p in parts], [3, 0, 1]))
    assert decoded.data.view(dtype).tolist() == np.concatenate(parts).tolist()
    block = ByteStreamSplit(bits).decode_block(np.frombuffer(split(parts[0]), np.uint8), 3)
    assert block.data.view(dtype).tolist() == parts[0].tolist()


def test_missing_bytes_are_corrupt() -> None:
    for size, count in ((7, 2), (8, 3), (8, 1 << 60), (8, -1)):
        with pytest.raises(CorruptError):
            ByteStreamSplit(32).decode_block(np.zeros(size, np.uint8), count)


def test_byte_stream_split_descriptions_are_validated() -> None:
    def describe(values: pb.CompressiveEncoding) -> pb.CompressiveEncoding:
        return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=values))

    def flat(bits: int) -> pb.CompressiveEncoding:
        return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))

    assert codec_from_proto(describe(flat(64))) == ByteStreamSplit(64)
    for values in (flat(16), pb.CompressiveEncoding(), describe(flat(32))):
        with pytest.raises(UnsupportedError):
            codec_from_proto(describe(values))


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from([4, 8]), st.randoms())
def test_join_streams_equals_its_reference(make_chunks: Make, counts: list[int], width: int, random: object) -> None:
    rng = np.random.default_rng(random.getrandbits(32))
    chunks = make_chunks([[rng.bytes(n * width)] for n in counts], counts)
    out, expected = (np.zeros(sum(counts), f"<u{width}") for _ in range(2))
    kernels.join_streams(chunks.data, chunks.starts[0], chunks.counts, out)
    kernels.join_streams_reference(chunks.data, chunks.starts[0], chunks.counts, expected)
    assert out.tolist() == expected.tolist()
