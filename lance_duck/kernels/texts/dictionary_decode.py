"""Kernel that finds the distinct values of a string array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.distinct import text_number

SLOTS = 4096
"""Number of hash table slots. At most half of them are used."""
ROOM = SLOTS + 256
MOST = SLOTS // 2


@kernel
def number_bytes(
    data: Bytes, start: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Number distinct values like `number_texts`, for values of one byte.

    Args:
        data: Bytes of the concatenated values, beginning at `start`. The caller has checked that `data` contains all of
            them.
        start: Offset of the first value.
        places: uint32 (count,), output: number of each value.
        firsts: int64, at least 256 slots, output: index of the first occurrence of each distinct value.
        table: int32, at least 256 slots, initially -1, output: the number of each byte value.

    Returns:
        Number of distinct values.
    """
    count = 0
    for i in range(len(places)):
        value = data[start + i]
        number = table[value]
        if number < 0:
            number = table[value] = count
            firsts[count] = i
            count += 1
        places[i] = number
    return count


def number_bytes_reference(
    data: Bytes, start: int, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Reference implementation in plain Python."""
    numbers: dict[int, int] = {}
    for i in range(len(places)):
        value = int(data[start + i])
        if value not in numbers:
            firsts[len(numbers)] = i
            numbers[value] = len(numbers)
        places[i] = numbers[value]
    return len(numbers)


@kernel
def are_bytes(offsets: NDArray[Any]) -> bool:
    """Return whether all values have one byte.

    Args:
        offsets: (count + 1,).
    """
    same: Any = True
    first: Any = np.int64(offsets[0])
    for i in range(len(offsets)):
        same &= np.int64(offsets[i]) == first + i
    return bool(same)


def are_bytes_reference(offsets: NDArray[Any]) -> bool:
    """Reference implementation in plain Python."""
    values = offsets.tolist()
    return bool(values == [*range(values[0], values[0] + len(values))])


@kernel
def number_texts(
    offsets: NDArray[Any], data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Number distinct values in order of first occurrence.

    Args:
        offsets: (count + 1,), ascending. The caller has checked that they lie within the data.
        data: Bytes of the values.
        places: uint32 (count,), output: number of each value.
        firsts: int64 (MOST,), output: index of the first occurrence of each distinct value.
        table: int32 (ROOM,), initially -1, output: a hash table of value numbers, then the numbers of one-byte values.

    Returns:
        Number of distinct values, or -1 if there are more than MOST.
    """
    count = 0
    for i in range(len(places)):
        start: Any = np.int64(offsets[i])
        size: Any = np.int64(offsets[i + 1]) - start
        if size == 1 and table[SLOTS + np.int64(data[start])] >= 0:
            places[i] = table[SLOTS + np.int64(data[start])]
            continue
        number = text_number(offsets, data, i, firsts, table, SLOTS - 1)
        if number < 0:
            if count == MOST:
                return -1
            table[~number] = count
            firsts[count] = i
            number = np.int64(count)
            count += 1
        places[i] = number
        if size == 1:
            table[SLOTS + np.int64(data[start])] = number
    return count


def number_texts_reference(
    offsets: NDArray[Any], data: Bytes, places: NDArray[np.uint32], firsts: NDArray[np.int64], table: NDArray[np.int32]
) -> int:
    """Reference implementation in plain Python."""
    numbers: dict[bytes, int] = {}
    for i in range(len(places)):
        text = data[offsets[i] : offsets[i + 1]].tobytes()
        if text not in numbers:
            if len(numbers) == MOST:
                return -1
            firsts[len(numbers)] = i
            numbers[text] = len(numbers)
        places[i] = numbers[text]
    return len(numbers)
