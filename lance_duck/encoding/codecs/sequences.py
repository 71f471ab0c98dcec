"""Number sequences in 2.3 files, either stored or computed: offsets of texts, positions of nulls and lists.

    encoding   | stored                                       | values
    range      | nothing                                      | start, start + step, …
    constant   | nothing                                      | one value; an empty sequence without a value
    delta      | the deltas, in their own encoding            | base, base + first delta, …: one more than deltas

Deltas wrap at the width of the values. Each chunk starts a new sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import MOST_UNSTORED, WORDS, justified, unsigned_words
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

Numbers = NDArray[np.unsignedinteger[Any]]
FromProto = Callable[[pb.CompressiveEncoding], Codec]


class NumberSequence(Protocol):
    """A reader of numbers that all have the same width."""

    @property
    def num_buffers(self) -> int:
        """Number of buffers in a chunk: 1, or 0 if nothing is stored."""

    @property
    def bits(self) -> int:
        """Number of bits per number."""

    def decode(self, chunks: Chunks) -> Numbers:
        """Return the numbers of all chunks, in order: counts.sum() of them.

        Raises:
            CorruptError: The bytes cannot hold the numbers.
        """


@dataclass(frozen=True, slots=True)
class RangeNumbers:
    """Computed numbers: `start`, `start + step`, and so on."""

    bits: int
    start: int
    step: int

    @property
    def num_buffers(self) -> int:
        """Always 0: nothing is stored."""
        return 0

    def decode(self, chunks: Chunks) -> Numbers:
        """See `NumberSequence.decode`."""
        counts = chunks.counts
        total = justified(counts, np.full(len(counts), MOST_UNSTORED), "range")
        firsts = np.repeat(np.cumsum(counts) - counts, counts)
        places = (np.arange(total, dtype=np.int64) - firsts).astype(np.uint64)
        numbers = np.uint64(self.start) + places * np.uint64(self.step)
        narrow: Numbers = numbers.astype(WORDS[self.bits])
        return narrow


@dataclass(frozen=True, slots=True)
class DeltaNumbers:
    """Numbers that are stored as the differences between neighbours. Each chunk begins with `base`.

    Attributes:
        bits: Bits of a number.
        base: The first number.
        deltas: Codec of the differences.
    """

    bits: int
    base: int
    deltas: Codec

    @property
    def num_buffers(self) -> int:
        """Always 1: the differences."""
        return 1

    def decode(self, chunks: Chunks) -> Numbers:
        """See `NumberSequence.decode`."""
        counts = chunks.counts
        between = Chunks(chunks.data, chunks.starts, chunks.sizes, np.maximum(counts - 1, 0))
        block = self.deltas.decode_blocks(between)
        deltas = _widened(block, self.bits)
        ends = np.cumsum(counts)
        filled = counts > 0
        steps = np.full(int(ends[-1]) if len(ends) else 0, 0, np.uint64)
        heads = (ends - counts)[filled]
        rest = np.ones(len(steps), np.bool_)
        rest[heads] = False
        steps[rest] = deltas
        sums = np.cumsum(steps, dtype=np.uint64)
        starts = np.repeat(sums[heads], counts[filled])
        numbers: Numbers = (sums - starts + np.uint64(self.base)).astype(WORDS[self.bits])
        return numbers


@dataclass(frozen=True, slots=True)
class StoredNumbers:
    """Numbers that are stored in one of the value encodings."""

    bits: int
    codec: Codec

    @property
    def num_buffers(self) -> int:
        """Always 1: the numbers."""
        return 1

    def decode(self, chunks: Chunks) -> Numbers:
        """See `NumberSequence.decode`."""
        numbers: Numbers = unsigned_words(self.codec.decode_blocks(chunks), self.bits, "sequence")
        return numbers


def sequence_from_proto(encoding: pb.CompressiveEncoding, bits: int, codec_from_proto: FromProto) -> NumberSequence:
    """Return the reader of a sequence of numbers.

    Args:
        encoding: Description of the sequence.
        bits: Bits of a number, unless the description declares them.
        codec_from_proto: Returns the codec of a value encoding.

    Raises:
        CorruptError: The description contradicts itself.
        UnsupportedError: The encoding is not supported.
    """
    kind = encoding.WhichOneof("compression")
    if kind == "range":
        return RangeNumbers(
            _word(encoding.range.uncompressed_bits_per_value), encoding.range.start, encoding.range.step
        )
    if kind == "constant" and encoding.constant.HasField("value"):
        value = encoding.constant.value
        return RangeNumbers(_word(8 * len(value)), int.from_bytes(value, "little"), 0)
    if kind == "delta":
        width = _word(encoding.delta.uncompressed_bits_per_value)
        return DeltaNumbers(width, encoding.delta.base, codec_from_proto(encoding.delta.deltas))
    return StoredNumbers(bits, codec_from_proto(encoding))


def _word(bits: int) -> int:
    if bits not in WORDS:
        raise UnsupportedError(
            "sequences do not support numbers of this size", where="page encoding", found=f"{bits} bits"
        )
    return bits


def _widened(block: Block, bits: int) -> NDArray[np.uint64]:
    width = getattr(block, "bits", None)
    if width not in WORDS:
        raise CorruptError("the deltas are not numbers", where="delta encoding", expected=f"{bits} bits")
    return unsigned_words(block, width, "delta").astype(np.uint64)
