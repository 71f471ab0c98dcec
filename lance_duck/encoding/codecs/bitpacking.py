"""Bit-packed unsigned words of T = 8, 16, 32 or 64 bits, in FastLanes order (`kernels/numbers/bitpacking.py`).

Inline: blocks of 1024 values. Each block has its own width. The last block may hold fewer values.

    offset  size     field
    0       T / 8    W, bits of a packed value, 0 to T
    T / 8   W * 128  packed values

Out of line: W is in the page's description. Whole blocks of W * 128 bytes are followed by the last n % 1024 values.
These are T-bit words if the buffer ends exactly after them, otherwise one more block with padding. If W = 0, nothing is
stored and all values are 0. Pages without nulls use this form for their levels if adjacent pages have nulls.
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
from lance_duck.encoding.codec_checks import MOST_UNSTORED, WORDS, justified, no_form, unsigned_words
from lance_duck.encoding.codecs.chunk_codec import ChunkCodec
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.numbers.bitpacking import BLOCK, ROW_BYTES, unpack_fixed, unpack_inline
from lance_duck.kernels.status import check_status
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.kernels.numbers import bitpacking_encode
else:
    bitpacking_encode = lazy.modules(globals(), "lance_duck.kernels.numbers", "bitpacking_encode")


def _word_bits(bits: int) -> int:
    if bits not in WORDS:
        raise UnsupportedError(
            "bit packing does not support words of this size", where="page encoding", found=f"{bits} bits"
        )
    return bits


@dataclass(frozen=True, slots=True)
class InlineBitpacking(ChunkCodec):
    """Blocks that begin with their width.

    Attributes:
        bits: T, bits of an unpacked value.
    """

    name = "inline bitpacking"

    bits: int

    @classmethod
    def from_proto(cls, message: pb.InlineBitpacking) -> InlineBitpacking:
        """Return the codec. Raises UnsupportedError for other word sizes, and for blocks that are compressed again."""
        if message.HasField("values") and message.values.scheme:
            raise no_form("inline bitpacking", "compressed")
        return cls(_word_bits(message.uncompressed_bits_per_value))

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Unpack and join all chunks."""
        word = WORDS[self.bits]
        starts, sizes, counts = chunks.starts[0], chunks.sizes[0], chunks.counts
        total = justified(counts, sizes // word.itemsize * BLOCK, self.name)
        out = unset(total, word)
        scratch = np.empty(BLOCK, word)
        check_status(unpack_inline(readonly(chunks.data), starts, sizes, counts, out, scratch), self.name)
        return FixedWidth(self.bits, out.view(np.uint8), total)

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        message = pb.InlineBitpacking(uncompressed_bits_per_value=self.bits)
        return pb.CompressiveEncoding(inline_bitpacking=message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Pack blocks of 1024 values, each as wide as its widest value. The last block of a chunk may be shorter."""
        words = unsigned_words(block, self.bits, self.name)
        blocks = int(((counts + BLOCK - 1) // BLOCK).sum())
        out = np.empty(blocks * (words.itemsize + BLOCK * words.itemsize), np.uint8)
        ends = np.empty(len(counts), np.int64)
        size = bitpacking_encode.pack_inline(words, counts, np.empty(BLOCK, words.dtype), out, ends)
        return ((out[:size], ends),)


@dataclass(frozen=True, slots=True)
class OutOfLineBitpacking(ChunkCodec):
    """Blocks that all have the same width.

    Attributes:
        bits: T, bits of an unpacked value.
        width: W, bits of a packed value, 0 to T.
    """

    name = "out-of-line bitpacking"

    bits: int
    width: int

    @classmethod
    def from_proto(cls, message: pb.OutOfLineBitpacking) -> OutOfLineBitpacking:
        """Return the codec.

        Raises:
            UnsupportedError: The word size is not supported, or values are not flat.
            CorruptError: The width is out of range.
        """
        bits = _word_bits(message.uncompressed_bits_per_value)
        if message.values.WhichOneof("compression") != "flat":
            raise no_form("out-of-line bitpacking", "nested")
        width = message.values.flat.bits_per_value
        if not 0 <= width <= bits:
            raise CorruptError(
                "the width of packed values is out of range",
                where="page encoding",
                expected=f"0 to {bits} bits",
                found=width,
            )
        return cls(bits, width)

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Unpack and join all chunks."""
        word = WORDS[self.bits]
        starts, sizes, counts = chunks.starts[0], chunks.sizes[0], chunks.counts
        if self.width == 0:
            total = justified(counts, np.full(len(counts), MOST_UNSTORED), self.name)
            return FixedWidth(self.bits, np.zeros(total * self.bits // 8, np.uint8), total)
        total = justified(counts, sizes * 8 // self.width, self.name)
        out = unset(total, word)
        scratch = np.empty(BLOCK, word)
        status = unpack_fixed(readonly(chunks.data), starts, sizes, counts, self.width, out, scratch)
        check_status(status, self.name)
        return FixedWidth(self.bits, out.view(np.uint8), total)

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.width))
        message = pb.OutOfLineBitpacking(uncompressed_bits_per_value=self.bits, values=values)
        return pb.CompressiveEncoding(out_of_line_bitpacking=message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Pack values of at most `width` bits. The tail of each chunk uses the shorter of its two forms."""
        words = unsigned_words(block, self.bits, self.name)
        ends = np.cumsum(self.sizes(counts))
        out = np.empty(int(ends[-1]), np.uint8)
        bitpacking_encode.pack_fixed(words, counts, self.width, np.empty(BLOCK, words.dtype), out)
        return ((out, ends),)

    def sizes(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the packed size of chunks of `counts` values, in bytes."""
        packed = self.width * ROW_BYTES
        tails: NDArray[np.int64] = np.minimum(counts % BLOCK * (self.bits // 8), packed)
        return counts // BLOCK * packed + tails
