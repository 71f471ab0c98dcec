"""Kernels that number distinct values, for dictionaries: a hash table of the values that came first."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u64
from lance_duck.kernels.texts.dictionary_decode import next_word
from lance_duck.kernels.texts.variable import Offsets

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@kernel
def number_variable(
    offsets: Offsets, data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Number distinct values in the order in which they come.

    Args:
        offsets: count + 1, ascending, within the data: checked by the caller.
        data: Bytes of the values.
        places: count, written: number of each value.
        firsts: Written: where each distinct value comes first; as many as there may be.
        table: -1 in each slot; a power of two of them, at least twice as many as firsts.

    Returns:
        How many distinct values there are; -1 when there are more than firsts.
    """
    last = len(table) - 1
    count = 0
    for i in range(len(places)):
        start: Any = np.int64(offsets[i])
        size: Any = np.int64(offsets[i + 1]) - start
        mixed = np.uint64(size)
        for j in range(0, size, 8):
            mixed = (mixed ^ next_word(data, start + j, size - j)) * _PRIME
            mixed ^= mixed >> _HALF
        slot = np.int64(mixed & np.uint64(last))
        while True:
            number: Any = np.int64(table[slot])
            if number < 0:
                if count == len(firsts):
                    return -1
                table[slot] = count
                firsts[count] = i
                number = count
                count += 1
                break
            other: Any = np.int64(offsets[firsts[number]])
            same = np.int64(offsets[firsts[number] + 1]) - other == size
            j = 0
            while same and j < size:
                same = next_word(data, start + j, size - j) == next_word(data, other + j, size - j)
                j += 8
            if same:
                break
            slot = (slot + 1) & last
        places[i] = number
    return count


def number_variable_reference(
    offsets: Offsets, data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Compute the plain reference, in Python."""
    return _number([data[a:b].tobytes() for a, b in pairwise(offsets.tolist())], places, firsts)


@kernel
def number_fixed(
    data: Bytes, words: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Return the same as number_variable, for values of `words` * 8 bytes, one after the other."""
    last = len(table) - 1
    width = words * 8
    count = 0
    for i in range(len(places)):
        at = i * width
        mixed = np.uint64(0)
        for j in range(words):
            mixed = (mixed ^ load_u64(data, at + 8 * j)) * _PRIME
            mixed ^= mixed >> _HALF
        slot = np.int64(mixed & np.uint64(last))
        while True:
            number: Any = np.int64(table[slot])
            if number < 0:
                if count == len(firsts):
                    return -1
                table[slot] = count
                firsts[count] = i
                number = count
                count += 1
                break
            other = firsts[number] * width
            same: Any = True
            for j in range(words):
                same &= load_u64(data, at + 8 * j) == load_u64(data, other + 8 * j)
            if same:
                break
            slot = (slot + 1) & last
        places[i] = number
    return count


def number_fixed_reference(
    data: Bytes, words: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Compute the plain reference, in Python."""
    width = words * 8
    return _number([data[i * width : (i + 1) * width].tobytes() for i in range(len(places))], places, firsts)


def _number(values: list[bytes], places: NDArray[np.uint32], firsts: NDArray[np.int64]) -> int:
    numbers: dict[bytes, int] = {}
    for i, value in enumerate(values):
        if value not in numbers:
            if len(numbers) == len(firsts):
                return -1
            firsts[len(numbers)] = i
            numbers[value] = len(numbers)
        places[i] = numbers[value]
    return len(numbers)
