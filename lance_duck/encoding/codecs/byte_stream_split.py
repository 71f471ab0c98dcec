"""Byte stream split: all first bytes of a buffer's n values, then all second bytes, and so on.

offset   size   field
k * n    n      byte k of each value, lowest byte first; k < bits / 8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import WORDS, fixed_values, justified, no_form
from lance_duck.encoding.codecs.chunk_codec import ChunkCodec
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.numbers.byte_stream_split import join_streams, split_streams
from lance_duck.wire.pb import encodings21_pb2 as pb


@dataclass(frozen=True, slots=True)
class ByteStreamSplit(ChunkCodec):
    """Byte stream split: the first bytes of all values, then the second bytes, and so on.

    Attributes:
        bits: Bits of a value, 32 or 64.
    """

    name = "byte stream split"

    bits: int

    @classmethod
    def from_proto(cls, message: pb.ByteStreamSplit) -> ByteStreamSplit:
        """Return the codec. Raises UnsupportedError unless values are flat and have 32 or 64 bits."""
        if message.values.WhichOneof("compression") != "flat" or message.values.flat.data.scheme:
            raise no_form("byte stream split", "nested")
        bits = message.values.flat.bits_per_value
        if bits not in (32, 64):
            raise UnsupportedError(
                "byte stream split does not support values of this width", where="page encoding", found=f"{bits} bits"
            )
        return cls(bits)

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Reassemble the values of all chunks from their byte streams."""
        total = justified(chunks.counts, chunks.sizes[0] // (self.bits // 8), self.name)
        out: NDArray[Any] = unset(total, WORDS[self.bits])
        join_streams(readonly(chunks.data), chunks.starts[0], chunks.counts, out)
        return FixedWidth(self.bits, out.view(np.uint8), total)

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits))
        return pb.CompressiveEncoding(byte_stream_split=pb.ByteStreamSplit(values=values))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Split the values of each chunk into one stream per byte position."""
        fixed = fixed_values(block, self.bits, self.name)
        width = self.bits // 8
        out = np.empty(fixed.count * width, np.uint8)
        split_streams(readonly(fixed.data), width, counts, out)
        return ((out, np.cumsum(counts) * width),)
