"""Kernels for bit sets: bitmaps of unordered 64-bit ids, and split-block Bloom filters.

`encoding.bloom` describes the layout of the filters.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine

UInt64s = NDArray[np.uint64]


@kernel
def bounds_of_names(names: UInt64s, bounds: UInt64s) -> None:
    """Find the smallest and largest upper half of ids, and their largest lower half.

    Args:
        names: 64-bit ids, at least one.
        bounds: uint64 (3,), output.
    """
    low = high = names[0] >> np.uint64(32)
    within = np.uint64(0)
    for i in range(len(names)):
        key = names[i] >> np.uint64(32)
        low = min(low, key)
        high = max(high, key)
        within = max(within, names[i] & np.uint64(0xFFFFFFFF))
    bounds[0] = low
    bounds[1] = high
    bounds[2] = within


def bounds_of_names_reference(names: UInt64s, bounds: UInt64s) -> None:
    """Reference implementation in plain Python."""
    keys = names >> np.uint64(32)
    bounds[:] = keys.min(), keys.max(), (names & np.uint64(0xFFFFFFFF)).max()


@kernel
def set_bits(names: UInt64s, least: int, words: NDArray[np.uint64]) -> None:
    """Set a bit for each id.

    Args:
        names: 64-bit ids, within the bounds given by `least` and the shape of `words`.
        least: Upper half of the ids in the first row of `words`.
        words: uint64 (upper halves, lower halves / 64), output: a bit for each lower half, lowest bit first.
    """
    first = np.uint64(least)
    for i in range(len(names)):
        row = np.int64((names[i] >> np.uint64(32)) - first)
        within = names[i] & np.uint64(0xFFFFFFFF)
        words[row, np.int64(within >> np.uint64(6))] |= np.uint64(1) << (within & np.uint64(63))


def set_bits_reference(names: UInt64s, least: int, words: NDArray[np.uint64]) -> None:
    """Reference implementation in plain Python."""
    for name in names.tolist():
        row, within = (name >> 32) - least, name & 0xFFFFFFFF
        words[row, within >> 6] |= np.uint64(1 << (within & 63))


FILTER_WORDS = 8

_SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


@kernel
def insert_hashes(words: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
    """Set the bits of hashes in one filter of shape (blocks, 8), with at least one block."""
    blocks = np.uint64(len(words))
    for i in range(len(hashes)):
        block = np.int64((hashes[i] >> np.uint64(32)) * blocks >> np.uint64(32))
        for j in range(FILTER_WORDS):
            words[block, j] |= _bit(hashes[i], j)


@kernel
def find_hashes(filters: NDArray[np.uint32], hashes: NDArray[np.uint64], is_maybe: NDArray[np.bool_]) -> None:
    """Test whether each filter may hold any of the hashes. `filters` is (filters, blocks, 8), with blocks > 0."""
    blocks = np.uint64(filters.shape[1])
    for k in range(len(filters)):
        is_maybe[k] = False
        for i in range(len(hashes)):
            block = np.int64((hashes[i] >> np.uint64(32)) * blocks >> np.uint64(32))
            j = 0
            while j < FILTER_WORDS and filters[k, block, j] & _bit(hashes[i], j):
                j += 1
            if j == FILTER_WORDS:
                is_maybe[k] = True
                break


@subroutine
def _bit(value: Any, word: int) -> Any:
    # numba computes products of two uint32 in uint64. The format requires uint32.
    place = np.uint32((value & np.uint64(0xFFFFFFFF)) * np.uint64(_SALTS[word])) >> np.uint32(27)
    return np.uint32(1) << np.uint32(place)


def insert_hashes_reference(words: NDArray[np.uint32], hashes: list[int]) -> None:
    """Reference implementation in plain Python."""
    for value in hashes:
        block = (value >> 32) * len(words) >> 32
        for j, salt in enumerate(_SALTS):
            words[block, j] |= np.uint32(1 << ((value % 2**32) * salt % 2**32 >> 27))


def find_hashes_reference(filters: NDArray[np.uint32], hashes: list[int]) -> list[bool]:
    """Reference implementation in plain Python."""
    is_maybe = []
    for each in filters:
        masks = [np.zeros_like(each) for _ in hashes]
        for mask, value in zip(masks, hashes, strict=True):
            insert_hashes_reference(mask, [value])
        is_maybe.append(any(bool((each & mask == mask).all()) for mask in masks))
    return is_maybe
