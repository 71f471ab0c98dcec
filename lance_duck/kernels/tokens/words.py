"""Numbers of distinct words: a hash table with open addressing, which grows between two calls of a kernel.

A slot of the table is two words of 64 bits:

bits   | field
0-63   | the first 8 bytes of the word, the first one lowest, zeros behind its end
64-95  | number of the word, plus 1; 0 in a free slot
96-103 | bytes of the word, 255 for all longer ones
104-127| high bits of its hash
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.distinct import mix_word, next_word

Slots = NDArray[np.uint64]
"""A hash table: twice a power of two words."""

LONG = 0xFFFFFFFF
"""In place of the number of a word: the token is too long."""

FULL = -1
"""There are more distinct words than places for them."""

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
    """Return whether words of a size, with the same first 8 bytes, are equal."""
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
    """Return the number of a word: `count` for a new one, which is put into the table, FULL if it has no place.

    Args:
        data: Holds `size` bytes from `start` on.
        start: Where the word begins.
        size: Number of bytes of the word.
        slots: The table, more than half of it free when all places are taken.
        known: Bytes of the words so far.
        place: Where in `known` the bytes of a new word are, or will be.
        starts: Where in `known` each word begins, written for a new one.
        sizes: Number of bytes of each word, written for a new one.
        count: Number of words so far.
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
    """Put distinct words, which lie within the data, into a new table, whose slots are all 0."""
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
