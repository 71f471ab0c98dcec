"""Kernels that number distinct values for dictionaries, with a hash table of first occurrences."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u64
from lance_duck.kernels.texts.distinct import mix_word, text_number
from lance_duck.kernels.texts.variable import Offsets


@kernel
def number_variable(
    offsets: Offsets, data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Number distinct values in order of first occurrence.

    Args:
        offsets: (count + 1,), ascending. The caller has checked that they lie within the data.
        data: Bytes of the values.
        places: uint32 (count,), output: number of each value.
        firsts: int64, output: index of the first occurrence of each distinct value. Its length limits the number of
            distinct values.
        table: int32, initially -1. Its length is a power of two, and at least twice the length of `firsts`.

    Returns:
        Number of distinct values, or -1 if `firsts` is too short.
    """
    last = len(table) - 1
    count = 0
    for i in range(len(places)):
        number = text_number(offsets, data, i, firsts, table, last)
        if number < 0:
            if count == len(firsts):
                return -1
            table[~number] = count
            firsts[count] = i
            number = np.int64(count)
            count += 1
        places[i] = number
    return count


def number_variable_reference(
    offsets: Offsets, data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Reference implementation in plain Python."""
    return _number([data[a:b].tobytes() for a, b in pairwise(offsets.tolist())], places, firsts)


@kernel
def number_fixed(
    data: Bytes, words: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Number distinct values like `number_variable`, for concatenated values of `words` * 8 bytes."""
    last = len(table) - 1
    count = 0
    for i in range(len(places)):
        number = _value_number(data, words, i, firsts, table, last)
        if number < 0:
            if count == len(firsts):
                return -1
            table[~number] = count
            firsts[count] = i
            number = np.int64(count)
            count += 1
        places[i] = number
    return count


@subroutine
def _value_number(
    data: Bytes, words: int, i: int, firsts: NDArray[np.int64], table: NDArray[np.int32], last: int
) -> Any:
    """Return the number of a value, or the complement of its free slot if the value is new."""
    width = words * 8
    mixed = np.uint64(0)
    for j in range(words):
        mixed = mix_word(mixed, load_u64(data, i * width + 8 * j))
    slot = np.int64(mixed & np.uint64(last))
    while True:
        number: Any = np.int64(table[slot])
        if number < 0:
            return ~slot
        first = firsts[number]
        same: Any = True
        for j in range(words):
            same &= load_u64(data, i * width + 8 * j) == load_u64(data, first * width + 8 * j)
        if same:
            return number
        slot = (slot + 1) & last


def number_fixed_reference(
    data: Bytes, words: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Reference implementation in plain Python."""
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
