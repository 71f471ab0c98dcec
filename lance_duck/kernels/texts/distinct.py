"""Subroutines that number distinct strings with hash tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.memory import Bytes, load_u64

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@subroutine
def next_word(data: Bytes, place: int, size: int) -> Any:
    """Return the next `size` bytes, up to eight, as a little-endian number."""
    if place + 8 <= len(data):
        word: Any = load_u64(data, place)
        return word if size >= 8 else word & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    word = np.uint64(0)
    for i in range(min(size, 8)):
        word |= np.uint64(data[place + i]) << np.uint64(8 * i)
    return word


@subroutine
def mix_word(mixed: Any, word: Any) -> Any:
    """Return a running hash updated with the next word of a string."""
    mixed = (mixed ^ word) * _PRIME
    return mixed ^ (mixed >> _HALF)


@subroutine
def text_number(
    offsets: NDArray[Any], data: Bytes, i: int, firsts: NDArray[np.int64], table: NDArray[np.int32], last: int
) -> Any:
    """Return the number of a string, or the complement of its free slot if the string is new.

    Args:
        offsets: Byte offset of each string, and the end of the last one.
        data: Bytes of the strings.
        i: Index of the string.
        firsts: Index of the first occurrence of each distinct string.
        table: Hash table of the distinct strings' numbers. Free slots are negative, and at least one slot is free.
        last: Slot count of the table minus one. The slot count is a power of two.
    """
    start: Any = np.int64(offsets[i])
    size: Any = np.int64(offsets[i + 1]) - start
    mixed = np.uint64(size)
    for j in range(0, size, 8):
        mixed = mix_word(mixed, next_word(data, start + j, size - j))
    slot = np.int64(mixed & np.uint64(last))
    while True:
        number: Any = np.int64(table[slot])
        if number < 0:
            return ~slot
        other: Any = np.int64(offsets[firsts[number]])
        same = np.int64(offsets[firsts[number] + 1]) - other == size
        j = 0
        while same and j < size:
            same = next_word(data, start + j, size - j) == next_word(data, other + j, size - j)
            j += 8
        if same:
            return number
        slot = (slot + 1) & last
