"""The codec protocol: what a compressive encoding of 2.1 and 2.2 does, in any layout."""

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
    """The value buffers of k miniblock chunks, all of them inside `data`.

    Whoever builds it has checked that 0 <= starts and starts + sizes <= len(data), so a kernel may trust the extents;
    that the *content* of a buffer fits its size and count is for the codec to check.

    Attributes:
        data: uint8, the bytes that hold all buffers.
        starts: int64 (num_buffers, k), where each buffer begins.
        sizes: int64 (num_buffers, k), its bytes.
        counts: int64 (k,), value slots in each chunk.
    """

    data: Bytes
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    counts: NDArray[np.int64]


class Codec(Protocol):
    """A compressive encoding: frozen dataclass, made by `registry.codec_from_proto`, or by who has chosen it to write.

    What decodes raises CorruptError when the bytes cannot hold what they claim; no allocation is larger than a size
    that the bytes at hand justify. What encodes trusts the block. All raise UnsupportedError for a form that the format
    does not define.
    """

    @property
    def num_buffers(self) -> int:
        """Buffers that the encoding takes from each miniblock chunk."""

    def decode_chunks(self, chunks: Chunks) -> Block:
        """Return the values of all chunks, in order: counts.sum() of them."""

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Return `count` values from one buffer: dictionaries and rep/def levels."""

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Decode one buffer of each chunk and join the blocks: the levels of miniblock chunks."""

    def decode_values(self, values: Block) -> Block:
        """Decode values that were compressed one by one (full zip), given as FixedWidth or VariableWidth."""

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description from which `registry.codec_from_proto` makes this codec."""

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the value buffers of chunks of `counts` values, which make up the block: what decode_chunks reads."""

    def encode_block(self, block: Block) -> Bytes:
        """Return one buffer of all values: what decode_block reads."""

    def encode_values(self, block: Block) -> Block:
        """Return each value by itself, FixedWidth or VariableWidth: what decode_values reads."""
