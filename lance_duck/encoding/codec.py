"""The codec protocol: a compressive encoding of 2.1 and 2.2, in any layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class Chunks:
    """The value buffers of k miniblock chunks. All of them lie within `data`.

    The caller has checked that 0 <= starts and starts + sizes <= len(data), so a kernel may trust the extents. The
    codec checks that the *content* of a buffer fits its size and count.

    Attributes:
        data: uint8, the bytes that contain all buffers.
        starts: int64 (num_buffers, k), offset of each buffer in `data`.
        sizes: int64 (num_buffers, k), number of bytes of each buffer.
        counts: int64 (k,), number of value slots in each chunk.
    """

    data: Bytes
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]


class Codec(Protocol):
    """A compressive encoding: a frozen dataclass, created by `registry.codec_from_proto` or by a writer.

    Decoding methods raise CorruptError if the bytes cannot hold the declared number of values. Their allocations are
    limited by the number of available bytes. Encoding methods trust the block. All methods raise UnsupportedError for a
    form that the format does not define.
    """

    @property
    def num_buffers(self) -> int:
        """Number of buffers that the encoding uses in each miniblock chunk."""

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Return the values of all chunks, in order: counts.sum() of them."""

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Return `count` values from one buffer, which holds a dictionary or levels."""

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Decode one buffer per chunk, and join the blocks. Used for the levels of miniblock chunks."""

    def decode_values(self, values: Block) -> Block:
        """Decode values that were compressed one by one (full zip), passed as FixedWidth or VariableWidth."""

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description from which `registry.codec_from_proto` makes this codec."""

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Encode the block as chunks of `counts` values. Returns their value buffers. The inverse of decode_chunks."""

    def encode_block(self, block: Block) -> Bytes:
        """Encode all values to one buffer. The inverse of decode_block."""

    def encode_values(self, block: Block) -> Block:
        """Encode each value separately, as FixedWidth or VariableWidth. The inverse of decode_values."""
