"""Run-length encoding: the value and the length of each run.

A miniblock chunk has two buffers: r values of b bits, and r run lengths of 8 bits (in 2.3 also 16 or 32 bits). Runs
beyond the chunk's number of values are ignored. In block form, used for levels, one buffer holds both:

    offset   size        field
    0        8           v, bytes of the values
    8        v           r = v * 8 / b values
    8 + v    r           run lengths
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.join import joined
from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks
from lance_duck.encoding.codec_checks import (
    MOST_UNSTORED,
    WORDS,
    justified,
    no_form,
    one_chunk,
    unsigned_words,
    words_at,
)
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.rle import SLACK, expand_runs
from lance_duck.kernels.status import check_status
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.kernels.numbers import rle_encode
else:
    rle_encode = lazy.modules(globals(), "lance_duck.kernels.numbers", "rle_encode")

MAX_RUN = 255
HEAD = 8


@dataclass(frozen=True, slots=True)
class Rle:
    """Runs of equal values.

    Attributes:
        bits: Bits of a value: 8, 16, 32 or 64.
        length_bits: Bits of a run length: 8, 16 or 32. The writer uses 8.
    """

    bits: int
    length_bits: int = 8

    @classmethod
    def from_proto(cls, message: pb.Rle) -> Rle:
        """Return the codec. Raises UnsupportedError unless values and run lengths are flat and of a supported width."""
        for part in (message.values, message.run_lengths):
            if part.WhichOneof("compression") != "flat" or part.flat.data.scheme:
                raise UnsupportedError("rle encoding supports only flat values and run lengths", where="page encoding")
        bits, length_bits = message.values.flat.bits_per_value, message.run_lengths.flat.bits_per_value
        if bits not in WORDS or length_bits not in (8, 16, 32):
            raise UnsupportedError(
                "rle encoding does not support these widths", where="page encoding", found=(bits, length_bits)
            )
        return cls(bits, length_bits)

    @property
    def num_buffers(self) -> int:
        """Always 2: run values and run lengths."""
        return 2

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Expand and join all chunks."""
        width = self.bits // 8
        runs = chunks.sizes[1] // (self.length_bits // 8)
        unequal = chunks.sizes[0] != runs * width
        if unequal.any():
            chunk = int(unequal.argmax())
            raise CorruptError(
                "values and run lengths differ in number",
                where=f"rle encoding, chunk {chunk}",
                expected=f"{int(runs[chunk]) * width} bytes of values",
                found=int(chunks.sizes[0, chunk]),
            )
        return self._expand(chunks.data, chunks.starts[0], chunks.starts[1], runs, chunks.counts)

    def decode_block(self, buffer: Bytes, count: int) -> FixedWidth:
        """Return the values of one buffer in block form."""
        return self.decode_blocks(one_chunk(buffer, count))

    def decode_blocks(self, chunks: Chunks) -> FixedWidth:
        """Return the values of chunks with one buffer each, in block form."""
        width = self.bits // 8
        starts, sizes = chunks.starts[0], chunks.sizes[0]
        if (sizes < HEAD).any():
            raise CorruptError(
                "the block is too short for its header", where="rle encoding", expected="8 bytes or more"
            )
        value_bytes = words_at(chunks.data, starts, np.dtype("<i8"))
        length_bytes = sizes - HEAD - value_bytes
        runs = length_bytes // (self.length_bits // 8)
        if ((value_bytes < 0) | (length_bytes < 0) | (value_bytes != runs * width)).any():
            raise CorruptError("values and run lengths do not fill the block", where="rle encoding")
        return self._expand(chunks.data, starts + HEAD, starts + HEAD + value_bytes, runs, chunks.counts)

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError: single values cannot be run-length encoded."""
        raise no_form("rle", "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        values = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.bits))
        lengths = pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=self.length_bits))
        return pb.CompressiveEncoding(rle=pb.Rle(values=values, run_lengths=lengths))

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return run values and run lengths. Each chunk starts a new run."""
        values, lengths, ends = self._runs(block, counts)
        return (values.view(np.uint8), ends * values.itemsize), (lengths, ends)

    def encode_blocks(self, block: Block, counts: NDArray[np.int64]) -> ChunkBuffer:
        """Encode each chunk to one buffer in block form. The inverse of decode_blocks."""
        values, lengths, ends = self._runs(block, counts)
        sizes = np.diff(ends, prepend=0)
        out_ends = np.cumsum(HEAD + sizes * (values.itemsize + 1))
        out = np.empty(int(out_ends[-1]), np.uint8)
        rle_encode.write_runs(values.view(np.uint8), lengths, sizes, values.itemsize, out)
        return out, out_ends

    def encode_block(self, block: Block) -> Bytes:
        """Return one buffer in block form."""
        return self.encode_blocks(block, np.array([block.count], np.int64))[0]

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError: single values cannot be run-length encoded."""
        raise no_form("rle", "per-value")

    def _runs(self, block: Block, counts: NDArray[np.int64]) -> tuple[NDArray[Any], Bytes, NDArray[np.int64]]:
        """Return run values, run lengths, and the end of each chunk's runs."""
        words = unsigned_words(block, self.bits, "rle")
        ends = np.empty(len(counts), np.int64)
        rle_encode.count_runs(words, counts, ends)
        np.cumsum(ends, out=ends)
        values, lengths = np.empty(int(ends[-1]), words.dtype), np.empty(int(ends[-1]), np.uint8)
        rle_encode.find_runs(words, counts, values, lengths)
        return values, lengths, ends

    def _expand(
        self,
        data: Bytes,
        values: NDArray[np.int64],
        lengths: NDArray[np.int64],
        runs: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> FixedWidth:
        if self.length_bits > 8:
            return self._expand_wide(data, values, lengths, runs, counts)
        total = justified(counts, runs * MAX_RUN, "rle")
        width = self.bits // 8
        out = unset(total * width + SLACK, np.uint8)
        check_status(expand_runs(readonly(data), values, lengths, runs, np.cumsum(counts), width, out), "rle")
        return FixedWidth(self.bits, out[: total * width], total)

    def _expand_wide(
        self,
        data: Bytes,
        values: NDArray[np.int64],
        lengths: NDArray[np.int64],
        runs: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> FixedWidth:
        justified(counts, np.where(runs > 0, MOST_UNSTORED, 0), "rle")
        word, length = WORDS[self.bits], WORDS[self.length_bits]
        parts = []
        for first, at, number, count in zip(
            values.tolist(), lengths.tolist(), runs.tolist(), counts.tolist(), strict=True
        ):
            words = np.frombuffer(data[first : first + number * word.itemsize].tobytes(), word)
            ends = np.cumsum(np.frombuffer(data[at : at + number * length.itemsize].tobytes(), length), dtype=np.int64)
            if count and (not len(ends) or ends[-1] < count):
                raise CorruptError("the runs end before the end of their chunk", where="rle encoding", expected=count)
            parts.append(np.repeat(words, np.diff(np.minimum(ends, count), prepend=0)))
        expanded = joined(parts, word)
        return FixedWidth(self.bits, expanded.view(np.uint8), len(expanded))
