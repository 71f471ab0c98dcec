"""Chooses the smallest encoding for numbers, estimated in one pass over the values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codec_checks import WORDS, unsigned_words
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.rle import MAX_RUN, Rle
from lance_duck.encoding.write.costs import CHUNK_VALUES, WORTH
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.numbers.bitpacking import BLOCK
from lance_duck.kernels.numbers.bitpacking_encode import collect_number_stats


@dataclass(frozen=True, slots=True)
class Look:
    """Statistics of numbers, from one pass over them.

    Attributes:
        count: Number of values.
        size: Size of a value, in bytes.
        runs: Number of runs of equal values.
        packed: Size of the bit-packed values, in bytes, including block widths.
        width: Number of bits of the widest value.
    """

    count: int
    size: int
    runs: int
    packed: int
    width: int

    @property
    def plain(self) -> int:
        """Size of the plain values, in bytes."""
        return self.count * self.size

    @property
    def in_runs(self) -> int:
        """Size of the runs, in bytes. A run has at most 255 values."""
        return (self.runs + self.count // MAX_RUN) * (self.size + 1)

    @property
    def least(self) -> int:
        """Size of the smallest form, in bytes."""
        return min(self.plain, self.packed, self.in_runs)


def look_at(block: FixedWidth) -> Look | None:
    """Return statistics of values. Returns None if the block is empty or its values are not machine words."""
    if block.bits not in WORDS or not block.count:
        return None
    words = unsigned_words(block, block.bits, "numbers")
    used_bits = np.empty(-(-block.count // BLOCK), np.uint64)
    runs = collect_number_stats(words, used_bits)
    widths = _bits(used_bits)
    packed = int(widths.sum()) * BLOCK // 8 + len(used_bits) * words.itemsize
    return Look(block.count, words.itemsize, runs, packed, int(widths.max()))


def pick_numbers(
    block: FixedWidth, choice: EncodingOptions, max_values: int, stats: Look | None = None
) -> tuple[Codec, NDArray[np.int64]]:
    """Return the codec for the values of a miniblock page, without general compression, and the chunks' value counts.

    Args:
        block: The values.
        choice: Encoding options of the field.
        max_values: Maximum number of values in a chunk, a power of two.
        stats: Result of `look_at` for the values, if known.
    """
    plain = Flat(block.bits), even_counts(block.count, min(max_values, plain_values(block.bits, choice.chunk_bytes)))
    if stats is None or choice.compression == "none":
        return plain
    if _in_runs(stats, choice):
        most = CHUNK_VALUES if block.bits <= choice.grammar.max_runs_bits else CHUNK_VALUES // 2
        return Rle(block.bits), even_counts(block.count, min(max_values, most))
    if max_values >= BLOCK and stats.packed < stats.plain * WORTH:
        return InlineBitpacking(block.bits), even_counts(block.count, BLOCK)
    return plain


def even_counts(count: int, size: int) -> NDArray[np.int64]:
    """Return the value count of each chunk: `size`, except that the last chunk may be smaller."""
    chunks = max(1, -(-count // size))
    counts = np.full(chunks, size, np.int64)
    counts[-1] = count - size * (chunks - 1)
    return counts


def plain_values(bits: int, chunk_bytes: int) -> int:
    """Return how many values of `bits` bits a chunk holds: a power of two that fits the chunk size."""
    fitting = max(2, (2 * chunk_bytes - 1) * 8 // bits)
    return min(CHUNK_VALUES, 1 << (fitting.bit_length() - 1))


def _in_runs(stats: Look, choice: EncodingOptions) -> bool:
    if choice.rle_threshold is not None:
        return stats.runs < stats.count * choice.rle_threshold and stats.in_runs <= min(stats.packed, stats.plain)
    return stats.in_runs < min(stats.packed, stats.plain) * WORTH


def _bits(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of used bits of each word. Uses two halves, because floats represent these exactly."""
    half = np.uint64(32)
    high, low = (np.frexp(part.astype(np.float64))[1] for part in (words >> half, words << half >> half))
    return np.where(high > 0, high + 32, low).astype(np.int64)
