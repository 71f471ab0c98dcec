"""Variable-length values whose offsets are a number sequence: 2.3 files.

chunk buffer | content
0            | n + 1 offsets, from 0, in their own encoding; missing if the encoding stores nothing
last         | the bytes of the values
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.encoding.block import Block, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import narrow_offsets, no_form
from lance_duck.encoding.codecs.sequences import NumberSequence, sequence_from_proto
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

_NAME = "variable"


@dataclass(frozen=True, slots=True)
class OffsetVariable:
    """Separately encoded offsets, and bytes. The codec only decodes.

    Attributes:
        offsets: Sequence reader for the offsets of each chunk.
        message: Description of the encoding.
    """

    offsets: NumberSequence
    message: pb.Variable

    @classmethod
    def from_proto(
        cls, message: pb.Variable, codec_from_proto: Callable[[pb.CompressiveEncoding], Codec]
    ) -> OffsetVariable:
        """Return the codec. Raises UnsupportedError for offsets other than 32 or 64 bits, and for compressed values."""
        if message.HasField("values") and message.values.scheme:
            raise no_form(_NAME, "compressed")
        kind = message.offsets.WhichOneof("compression")
        bits = 32 if kind != "rle" else message.offsets.rle.values.flat.bits_per_value
        offsets = sequence_from_proto(message.offsets, bits, codec_from_proto)
        if offsets.bits not in (32, 64):
            raise UnsupportedError(
                "the offset width is not supported", where="page encoding", expected="32 or 64", found=offsets.bits
            )
        return cls(offsets, message)

    @property
    def num_buffers(self) -> int:
        """Number of offset buffers, plus one for the bytes."""
        return self.offsets.num_buffers + 1

    def decode_chunks(self, chunks: Chunks) -> VariableWidth:
        """Join all chunks."""
        counts = chunks.counts + 1
        places = Chunks(chunks.data, chunks.starts[:1], chunks.sizes[:1], counts)
        offsets = self.offsets.decode(places).astype(np.int64)
        ends = np.cumsum(counts)
        firsts, lasts = offsets[ends - counts], offsets[ends - 1]
        lengths = np.delete(np.diff(offsets), ends[:-1] - 1)
        # If all offsets and their differences are non-negative, no offset wraps around, and the offsets ascend.
        if (offsets < 0).any() or (lengths < 0).any() or (lasts > chunks.sizes[-1]).any():
            raise CorruptError(
                "the offsets of a chunk are invalid",
                where="variable encoding",
                expected="ascending offsets within the chunk",
            )
        begins = chunks.starts[-1]
        parts = zip((begins + firsts).tolist(), (begins + lasts).tolist(), strict=True)
        data = joined((chunks.data[a:b] for a, b in parts), np.uint8)
        out: NDArray[np.int64] = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=out[1:])
        return VariableWidth(narrow_offsets(out, len(data)), data)

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Raise UnsupportedError."""
        raise no_form("variable with offsets of their own", "block")

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: levels have a fixed width."""
        raise no_form(_NAME, "level")

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError."""
        raise no_form("variable with offsets of their own", "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        return pb.CompressiveEncoding(variable=self.message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Raise UnsupportedError: 2.3 files are not written."""
        raise no_form("variable with offsets of their own", "written")

    def encode_block(self, block: Block) -> Bytes:
        """Raise UnsupportedError."""
        raise no_form("variable with offsets of their own", "written")

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError."""
        raise no_form("variable with offsets of their own", "written")
