"""Byte stream split: all first bytes of a buffer's n values, then all second bytes, and so on.

offset   size   field
k * n    n      byte k of each value, lowest byte first; k < bits / 8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import WORDS, fixed_values, justified, no_form, one_chunk
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.byte_stream_split import join_streams, split_streams
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class ByteStreamSplit:
    """Bytes of values, sorted by their place in the value.

    Attributes:
        bits: Bits of a value, 32 or 64.
    """

    bits: int

    @classmethod
    def from_proto(cls, message: pb.ByteStreamSplit) -> ByteStreamSplit:
        """Raise UnsupportedError unless values are flat 32 or 64 bits."""
        if message.values.WhichOneof("compression") != "flat" or message.values.flat.data.scheme:
            raise no_form("byte stream split", "nested")
        bits = message.values.flat.bits_per_value
        if bits not in (32, 64):
            raise UnsupportedError(
                "byte stream split values of this width", where="page encoding", found=f"{bits} bits"
            )
        return cls(bits)

    @property
    def num_buffers(self) -> int:
        """One buffer."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Put the values of all chunks together."""
        total = justified(chunks.counts, chunks.sizes[0] // (self.bits // 8), "byte stream split")
        out: NDArray[Any] = np.empty(total, WORDS[self.bits])
        join_streams(readonly(chunks.data), chunks.starts[0], chunks.counts, out)
        return FixedWidth(self.bits, out.view(np.uint8), total)

    def decode_block(self, buffer: Bytes, count: int) -> FixedWidth:
        """Return the values of one buffer."""
        return self.decode_chunks(one_chunk(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> FixedWidth:
        """Return the same as decode_chunks."""
        return self.decode_chunks(chunks)

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError: single values are never split."""
        raise no_form("byte stream split", "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits))
        return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=values))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the bytes of the values of each chunk, sorted by their place in the value."""
        fixed = fixed_values(block, self.bits, "byte stream split")
        width = self.bits // 8
        out = np.empty(fixed.count * width, np.uint8)
        split_streams(readonly(fixed.data), width, counts, out)
        return ((out, np.cumsum(counts) * width),)

    def encode_block(self, block: Block) -> Bytes:
        """Return all values as one chunk."""
        return self.encode_chunks(block, np.array([block.count], np.int64))[0][0]

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError: single values are never split."""
        raise no_form("byte stream split", "per-value")
