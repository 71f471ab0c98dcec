"""A hash table of distinct words, with open addressing. It grows between two calls of a kernel.

A slot of the table consists of two 64-bit integers:

bits   | field
0-63   | the first 8 bytes of the word, first byte lowest, zero-padded
64-95  | number of the word, plus 1; 0 in a free slot
96-103 | size of the word in bytes, at most 255
104-127| high bits of the word's hash
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.distinct import mix_word, next_word

Slots = NDArray[np.uint64]
"""A hash table with two 64-bit numbers for each slot. The number of slots is a power of two."""

LONG = 0xFFFFFFFF
"""Word number of a token that is too long."""

FULL = -1
"""The table is full."""

_HALF = np.uint64(32)
_BYTE = 255
_TAG = np.uint64(0xFFFFFF0000000000)
_ID = np.uint64(0xFFFFFFFF)


@subroutine
def _hash(data: Bytes, start: Any, size: Any, head: Any) -> Any:
    mixed = mix_word(head, np.uint64(size))
    for j in range(8, size, 8):
        mixed = mix_word(mixed, next_word(data, start + j, size - j))
    return mix_word(mixed, np.uint64(0))


@subroutine
def _same(data: Bytes, start: Any, known: Bytes, other: Any, size: Any) -> Any:
    """Return whether two words of equal size and with the same first 8 bytes are equal."""
    j = 8
    while j < size and next_word(data, start + j, size - j) == next_word(known, other + j, size - j):
        j += 8
    return j >= size


@subroutine
def word_number(
    data: Bytes,
    start: Any,
    size: Any,
    slots: Slots,
    known: Bytes,
    place: Any,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    count: Any,
) -> Any:
    """Return the number of a word. Adds a new word with the number `count`. Returns FULL if it does not fit.

    Args:
        data: Bytes that contain the word.
        start: Offset of the word.
        size: Size of the word, in bytes.
        slots: The table. More than half of its slots remain free at full capacity.
        known: Bytes of the known words.
        place: Offset in `known` for the bytes of a new word.
        starts: Offset in `known` of each word; updated for a new word.
        sizes: Size of each word in bytes; updated for a new word.
        count: Number of known words.
    """
    head = next_word(data, start, size)
    mixed = _hash(data, start, size, head)
    last = np.int64(len(slots) // 2 - 1)
    short = np.uint64(min(size, _BYTE))
    mark = (mixed & _TAG) | (short << _HALF)
    slot = np.int64(mixed & _ID) & last
    while True:
        entry = slots[2 * slot + 1]
        if entry == 0:
            if count == len(starts):
                return np.int64(FULL)
            slots[2 * slot] = head
            slots[2 * slot + 1] = mark | np.uint64(count + 1)
            starts[count] = place
            sizes[count] = size
            return np.int64(count)
        if slots[2 * slot] == head and (entry & ~_ID) == mark:
            number = np.int64(entry & _ID) - 1
            if size <= 8 or (
                (size < _BYTE or sizes[number] == size) and _same(data, start, known, starts[number], size)
            ):
                return number
        slot = (slot + 1) & last


@kernel
def fill_slots(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], slots: Slots) -> None:
    """Insert distinct words into a new table, whose slots are all 0. All words lie within `data`."""
    last = np.int64(len(slots) // 2 - 1)
    for number in range(len(starts)):
        start, size = starts[number], sizes[number]
        head = next_word(data, start, size)
        mixed = _hash(data, start, size, head)
        slot = np.int64(mixed & _ID) & last
        while slots[2 * slot + 1] != 0:
            slot = (slot + 1) & last
        slots[2 * slot] = head
        short = np.uint64(min(size, _BYTE))
        slots[2 * slot + 1] = (mixed & _TAG) | (short << _HALF) | np.uint64(number + 1)
