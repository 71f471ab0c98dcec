"""Flat: uncompressed values, little-endian.

A buffer of n values of b bits:

    offset  size          field
    0       n * b / 8     values; b == 1: eight to a byte, lowest bit first, the last byte padded
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import fixed_values, justified, no_form, one_chunk
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.flat import gather_low_words, join_bytes, join_low_words, spread_bits
from lance_duck.kernels.texts.take import gather_fixed
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.kernels.numbers import flat_encode
else:
    flat_encode = lazy.modules(globals(), "lance_duck.kernels.numbers", "flat_encode")

MAX_BITS = 1 << 31


@dataclass(frozen=True, slots=True)
class Flat:
    """Uncompressed values.

    Attributes:
        bits: Bits of a value: 1, or a multiple of 8.
    """

    bits: int

    @classmethod
    def from_proto(cls, message: pb.Flat) -> Flat:
        """Return the codec. Raises UnsupportedError for compressed values, and for widths that are not whole bytes."""
        bits = message.bits_per_value
        if message.HasField("data") and message.data.scheme:
            raise no_form("flat", "compressed")
        if bits != 1 and (bits % 8 or not 0 < bits <= MAX_BITS):
            raise UnsupportedError(
                "flat encoding does not support values of this width", where="page encoding", found=f"{bits} bits"
            )
        return cls(bits)

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Join the values of all chunks. The values of a single chunk are a view."""
        starts, counts = chunks.starts[0], chunks.counts
        most = chunks.sizes[0] * 8 if self.bits == 1 else chunks.sizes[0] // (self.bits // 8)
        total = justified(counts, most, "flat")
        data = readonly(chunks.data)
        if self.bits == 1:
            out = unset(total, np.uint8)
            spread_bits(data, starts, counts, out)
            return FixedWidth(1, out, total)
        width = self.bits // 8
        if len(counts) == 1:
            return FixedWidth(self.bits, data[int(starts[0]) :][: total * width], total)
        out = unset(total * width, np.uint8)
        join_bytes(data, starts, counts * width, out)
        return FixedWidth(self.bits, out, total)

    def decode_block(self, buffer: Bytes, count: int) -> FixedWidth:
        """Return the values of one buffer. The result is a view unless they are bits."""
        return self.decode_chunks(one_chunk(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> FixedWidth:
        """Return the values, like `decode_chunks`."""
        return self.decode_chunks(chunks)

    def decode_values(self, values: Block) -> FixedWidth:
        """Return the values themselves."""
        fixed = fixed_values(values, self.bits, "flat")
        capacity = len(fixed.data) * 8 // (8 if self.bits == 1 else self.bits)
        if capacity < fixed.count:
            raise CorruptError(
                "the buffer is too short for its values", where="flat encoding", expected=fixed.count, found=capacity
            )
        return fixed

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the values, as a view of the buffer unless they are bits."""
        fixed = fixed_values(block, self.bits, "flat")
        if self.bits == 1:
            ends = np.cumsum((counts + 7) // 8)
            packed = np.empty(int(ends[-1]), np.uint8)
            flat_encode.gather_bits(readonly(fixed.data), counts, packed)
            return ((packed, ends),)
        return ((fixed.data[: fixed.count * self.bits // 8], np.cumsum(counts) * (self.bits // 8)),)

    def encode_block(self, block: Block) -> Bytes:
        """Return the values, as a view of the buffer unless they are bits."""
        return self.encode_chunks(block, np.array([block.count], np.int64))[0][0]

    def encode_values(self, block: Block) -> FixedWidth:
        """Return the values themselves. Raises UnsupportedError for bits, which are smaller than a byte."""
        if self.bits == 1:
            raise no_form("flat bits", "per-value")
        return fixed_values(block, self.bits, "flat")


@dataclass(frozen=True, slots=True)
class LowFlat:
    """Flat integers of 128 or 256 bits. Narrowed to 64 bits if all values of a read fit.

    Attributes:
        whole: The codec of values at full width.
    """

    whole: Flat

    @property
    def num_buffers(self) -> int:
        """Always 1."""
        return 1

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Return the values of all chunks in 64 bits, or at full width if a value does not fit."""
        starts, counts = chunks.starts[0], chunks.counts
        width = self.whole.bits // 8
        out = unset(justified(counts, chunks.sizes[0] // width, "flat"), np.int64)
        if not join_low_words(readonly(chunks.data), starts, counts, width // 8, out):
            return self.whole.decode_chunks(chunks)
        return FixedWidth(64, out.view(np.uint8), len(out))

    def take(self, data: Bytes, starts: NDArray[np.int64]) -> FixedWidth:
        """Return the values at byte offsets that the caller has checked, like `decode_chunks`."""
        width = self.whole.bits // 8
        out = unset(len(starts), np.int64)
        if gather_low_words(readonly(data), starts, width // 8, out):
            return FixedWidth(64, out.view(np.uint8), len(out))
        wide = unset(len(starts) * width, np.uint8)
        gather_fixed(readonly(data), starts, width, wide)
        return FixedWidth(self.whole.bits, wide, len(starts))

    def decode_block(self, buffer: Bytes, count: int) -> FixedWidth:
        """Decode the values of one buffer."""
        return self.whole.decode_block(buffer, count)

    def decode_blocks(self, chunks: Chunks) -> FixedWidth:
        """Return the values, like `decode_chunks`."""
        return self.decode_chunks(chunks)

    def decode_values(self, values: Block) -> FixedWidth:
        """Return the values themselves."""
        return self.whole.decode_values(values)

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of the full-width values."""
        return self.whole.to_proto()

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Encode full-width values."""
        return self.whole.encode_chunks(block, counts)

    def encode_block(self, block: Block) -> Bytes:
        """Encode full-width values."""
        return self.whole.encode_block(block)

    def encode_values(self, block: Block) -> FixedWidth:
        """Encode full-width values."""
        return self.whole.encode_values(block)
