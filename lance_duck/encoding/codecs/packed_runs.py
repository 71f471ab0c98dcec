"""Run-length encoding whose values or lengths are encoded again: 2.3 files.

A miniblock chunk has two buffers, run values and run lengths, each with its own encoding. At least one buffer is plain,
possibly compressed as a whole. The size of this buffer determines the number of runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import MOST_UNSTORED, WORDS, justified, no_form, unsigned_words
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

_NAME = "rle with encoded parts"


@dataclass(frozen=True, slots=True)
class PackedRuns:
    """Runs of equal values. The codec only decodes.

    Attributes:
        values: Codec of the values, one for each run.
        lengths: Codec of the run lengths.
        message: Description of the encoding.
    """

    values: Codec
    lengths: Codec
    message: pb.Rle

    @classmethod
    def from_proto(cls, message: pb.Rle, codec_from_proto: Callable[[pb.CompressiveEncoding], Codec]) -> PackedRuns:
        """Return the codec. Raises UnsupportedError if neither run values nor run lengths are plain."""
        parts = codec_from_proto(message.values), codec_from_proto(message.run_lengths)
        if not any(_plain(part) for part in parts):
            raise UnsupportedError("rle encoding needs plain values or plain run lengths", where="page encoding")
        return cls(*parts, message)

    @property
    def num_buffers(self) -> int:
        """Always 2: run values and run lengths."""
        return 2

    def decode_chunks(self, chunks: Chunks) -> FixedWidth:
        """Expand and join all chunks."""
        counts = chunks.counts
        justified(counts, np.where(chunks.sizes.min(axis=0) > 0, MOST_UNSTORED, 0), _NAME)
        parts = [
            self._expanded(
                [chunks.data[start : start + size] for start, size in zip(starts, sizes, strict=True)], count
            )
            for starts, sizes, count in zip(chunks.starts.T, chunks.sizes.T, counts.tolist(), strict=True)
        ]
        words = joined(parts, np.uint8)
        return FixedWidth(8 * words.itemsize, words.view(np.uint8), len(words))

    def decode_block(self, buffer: Bytes, count: int) -> Block:
        """Raise UnsupportedError."""
        raise no_form(_NAME, "block")

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError."""
        raise no_form(_NAME, "level")

    def decode_values(self, values: Block) -> Block:
        """Raise UnsupportedError: single values cannot be run-length encoded."""
        raise no_form(_NAME, "per-value")

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        return pb.CompressiveEncoding(rle=self.message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Raise UnsupportedError: 2.3 files are not written."""
        raise no_form(_NAME, "written")

    def encode_block(self, block: Block) -> Bytes:
        """Raise UnsupportedError."""
        raise no_form(_NAME, "written")

    def encode_values(self, block: Block) -> Block:
        """Raise UnsupportedError."""
        raise no_form(_NAME, "written")

    def _expanded(self, buffers: list[Bytes], count: int) -> NDArray[np.unsignedinteger]:
        """Return `count` values of one chunk."""
        codecs = [self.values, self.lengths]
        runs = None
        for i, codec in enumerate(codecs):
            if isinstance(codec, General):
                codecs[i], buffers[i] = codec.inner, codec.decompress(buffers[i])
            plain = codecs[i]
            if isinstance(plain, Flat):
                runs = 8 * len(buffers[i]) // plain.bits
        values, lengths = (_words(c.decode_block(b, runs or 0)) for c, b in zip(codecs, buffers, strict=True))
        ends = np.cumsum(lengths, dtype=np.int64)
        wrapped = (ends < 0).any() or (np.diff(ends, prepend=0) < 0).any()
        if wrapped or len(values) != len(lengths) or (count and (not len(ends) or ends[-1] < count)):
            raise CorruptError("the runs end before the end of their chunk", where="rle encoding", expected=count)
        return np.repeat(values, np.diff(np.minimum(ends, count), prepend=0))


def _plain(codec: Codec) -> bool:
    inner = codec.inner if isinstance(codec, General) else codec
    return isinstance(inner, Flat) and inner.bits in WORDS


def _words(block: Block) -> NDArray[np.unsignedinteger]:
    if not isinstance(block, FixedWidth) or block.bits not in WORDS:
        raise CorruptError("the values or run lengths are not numbers", where="rle encoding")
    words: NDArray[np.unsignedinteger] = unsigned_words(block, block.bits, "rle")
    return words
