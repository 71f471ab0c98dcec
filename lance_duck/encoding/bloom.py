"""Split-block Bloom filters, as in Parquet.

A filter consists of blocks, each with 8 little-endian words of 32 bits. A value sets one bit in each word of one block:
h = XXH64(value), block (h >> 32) * blocks >> 32, word i: bit (low 32 bits of h) * salt_i mod 2^32 >> 27
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.keys import xxhash
from lance_duck.kernels.keys.bits import FILTER_WORDS, find_hashes, insert_hashes
from lance_duck.kernels.memory import Bytes

Hashes = NDArray[np.uint64]
Words = NDArray[np.uint32]

BLOCK_BYTES: Final = 4 * FILTER_WORDS

_LOG2_SIZES: Final = range(5, 28)  # log2 of possible filter sizes, in bytes
_BLOCK_BITS: Final = 8 * BLOCK_BYTES
_TERMS: Final = 750


def hash_values(data: Bytes, offsets: NDArray[np.integer]) -> Hashes:
    """Return the XXH64, with seed 0, of each value.

    Args:
        data: Bytes of all values.
        offsets: (n + 1,), ascending.

    Raises:
        CorruptError: The offsets descend, or point outside the data.
    """
    hashes = np.empty(len(offsets) - 1, np.uint64)
    if not xxhash.xxh64(readonly(data), readonly(offsets), hashes):
        raise CorruptError(
            "the offsets of the values are invalid",
            where="values to hash",
            expected=f"ascending offsets, at most {len(data)}",
        )
    return hashes


def hash_keys(keys: Sequence[bytes]) -> Hashes:
    """Return the XXH64, with seed 0, of each key."""
    offsets = np.fromiter(accumulate(map(len, keys), initial=0), np.int64, len(keys) + 1)
    return hash_values(np.frombuffer(b"".join(keys), np.uint8), offsets)


def new_filter(blocks: int) -> Words:
    """Return an empty filter of shape (blocks, 8)."""
    return np.zeros((blocks, FILTER_WORDS), "<u4")


def insert(words: Words, hashes: Hashes) -> None:
    """Insert the hashes of values into a filter of shape (blocks, 8)."""
    insert_hashes(words, readonly(hashes))


def may_hold_any(filters: Words, hashes: Hashes) -> NDArray[np.bool_]:
    """Return, for each filter, whether it may contain a value with one of the hashes."""
    result = np.zeros(len(filters), np.bool_)
    if filters.shape[1]:
        find_hashes(readonly(filters), readonly(hashes), result)
    return result


@cache
def blocks_for(items: int, probability: float) -> int:
    """Return the filter size in blocks, a power of two, for `items` values and this false positive probability.

    The size is at least 1 block and at most 128 MiB, even if this increases the probability.
    """
    low, high = 0, 64
    while high > low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _wrong(items, middle) <= probability else (middle, high)
    return 1 << (min(max(high, _LOG2_SIZES[0]), _LOG2_SIZES[-1]) - _LOG2_SIZES[0])


def _wrong(items: int, log2_bytes: int) -> float:
    """Return the false positive probability of a filter of 2^log2_bytes bytes.

    The number of values per block is assumed to follow a Poisson distribution.
    """
    bits = 8.0 * 2**log2_bytes
    if not items:
        return 0.0
    if items / bits > 2:
        return 1.0
    mean = _BLOCK_BITS / (bits / items)
    total = 0.0
    for values in reversed(range(_TERMS)):
        log_share = values * math.log(mean) - mean - math.lgamma(values + 1)
        all_set = 1 - (1 - 1 / 32) ** values
        if all_set:
            total += math.exp(log_share + FILTER_WORDS * math.log(all_set))
    return min(total, 1.0)
