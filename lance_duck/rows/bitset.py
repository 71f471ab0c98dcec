"""A set of small numbers as bits, with rank and select over blocks of 512 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.errors import CorruptError
from lance_duck.rows.costs import BITSET_PIECE

_BLOCK_BYTES = 64
_BLOCK_BITS = _BLOCK_BYTES * 8


class Bitset:
    """The set of numbers below `size` whose bit is set. The least significant bit of a byte comes first.

    Args:
        data: At least size / 8 bytes.
        size: Number of bits to use. Later bits are ignored.
        where: Name of the file, for messages.

    Raises:
        CorruptError: There are fewer bits than `size`.
    """

    def __init__(self, data: bytes, size: int, where: str) -> None:
        if size > len(data) * 8:
            raise CorruptError("bitmap is cut short", where=where, expected=f"{size} bits", found=len(data) * 8)
        self.size = size
        num_bytes = (size + 7) // 8
        blocks = max(1, -(-num_bytes // _BLOCK_BYTES))
        padded = np.zeros(blocks * _BLOCK_BYTES, np.uint8)
        padded[:num_bytes] = np.frombuffer(data, np.uint8, num_bytes)
        if size % 8:
            padded[num_bytes - 1] &= (1 << size % 8) - 1
        self._blocks = padded.reshape(blocks, _BLOCK_BYTES)
        counts = np.bitwise_count(self._blocks.view(np.uint64)).sum(axis=1, dtype=np.int64)
        self._before = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])

    @property
    def count(self) -> int:
        """Number of set bits."""
        return int(self._before[-1])

    def select_range(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the numbers at positions start … stop - 1 of the ascending list of numbers."""
        if start >= stop:
            return np.empty(0, np.int64)
        first = int(np.searchsorted(self._before, start, side="right")) - 1
        last = int(np.searchsorted(self._before, stop, side="left"))
        bits = np.unpackbits(self._blocks[first:last].reshape(-1), bitorder="little")
        positions = np.flatnonzero(bits).astype(np.int64, copy=False) + first * _BLOCK_BITS
        skip = start - int(self._before[first])
        return positions[skip : skip + stop - start]

    def select(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers at the given positions in the ascending list of numbers, in the order of `places`."""
        if not len(places):
            return np.empty(0, np.int64)
        low, high = int(places.min()), int(places.max())
        if high - low <= 64 * len(places):
            return self.select_range(low, high + 1)[places - low]
        return np.concatenate(
            [self._select_apart(places[i : i + BITSET_PIECE]) for i in range(0, len(places), BITSET_PIECE)]
        )

    def rank_of_set(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position of each number in the ascending list of numbers, or -1 if its bit is not set.

        Each number must be at least 0 and less than `size`.
        """
        pieces = [self._rank_piece(numbers[i : i + BITSET_PIECE]) for i in range(0, len(numbers), BITSET_PIECE)]
        return joined(pieces, np.int64)

    def _select_apart(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        block = np.searchsorted(self._before, places, side="right") - 1
        bits = np.unpackbits(self._blocks[block], axis=1, bitorder="little")
        ranks = np.cumsum(bits, axis=1, dtype=np.int16)
        target_ranks = (places - self._before[block] + 1).astype(np.int16)
        positions: NDArray[np.int64] = np.argmax(ranks == target_ranks[:, None], axis=1) + block * _BLOCK_BITS
        return positions

    def _rank_piece(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        block, bit = numbers // _BLOCK_BITS, numbers % _BLOCK_BITS
        rows = self._blocks[block]
        byte, shift = bit // 8, (bit % 8).astype(np.uint8)
        own = rows[np.arange(len(rows)), byte]
        before = np.where(np.arange(_BLOCK_BYTES) < byte[:, None], rows, 0)
        below = own & ((np.uint8(1) << shift) - np.uint8(1))
        rank = np.bitwise_count(before).sum(axis=1, dtype=np.int64) + np.bitwise_count(below) + self._before[block]
        return np.where((own >> shift) & 1, rank, -1)
