"""Kernels for sorted values of any length: search among them, check of their order, and words to sort them by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes

Offsets = NDArray[Any]
"""Offsets of values: int32 or int64, one more than values."""


@subroutine
def _compare(left: Bytes, a: Any, a_end: Any, right: Bytes, b: Any, b_end: Any) -> Any:
    """Compare two values bytewise, a prefix first: < 0, 0 or > 0. Both extents lie inside their buffers."""
    size = min(a_end - a, b_end - b)
    for i in range(size):
        x, y = left[a + i], right[b + i]
        if x != y:
            return -1 if x < y else 1
    return (a_end - a) - (b_end - b)


@kernel
def find_bytes(
    offsets: Offsets, data: Bytes, targets: Offsets, target_data: Bytes, after_equal: bool, places: NDArray[np.int64]
) -> int:
    """Find where values belong among sorted ones.

    Args:
        offsets: Offsets of the sorted values.
        data: Bytes of the sorted values.
        targets: Offsets of the values to place.
        target_data: Bytes of the values to place.
        after_equal: Whether a value belongs behind values that are equal to it; else before.
        places: int64, one for each target, written: the number of sorted values before it.

    Returns:
        A status.
    """
    size, target_size = len(data), len(target_data)
    for i in range(len(targets) - 1):
        begin, end = np.int64(targets[i]), np.int64(targets[i + 1])
        if begin < 0 or end < begin or end > target_size:
            return status.BAD_OFFSETS | (i << 8)
        low, high = np.int64(0), np.int64(len(offsets) - 1)
        while low < high:
            middle = (low + high) >> 1
            at, stop = np.int64(offsets[middle]), np.int64(offsets[middle + 1])
            if at < 0 or stop < at or stop > size:
                return status.BAD_OFFSETS | (i << 8)
            order = _compare(data, at, stop, target_data, begin, end)
            if order < 0 or (after_equal and order == 0):
                low = middle + 1
            else:
                high = middle
        places[i] = low
    return status.OK


@kernel
def descent(offsets: Offsets, data: Bytes) -> int:
    """Return the place of the first value that is less than its predecessor or has bad offsets; -1 if all ascend."""
    size = len(data)
    previous = np.int64(0)
    for i in range(len(offsets) - 1):
        at, stop = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if at < 0 or stop < at or stop > size:
            return i
        if i > 0 and _compare(data, previous, at, data, at, stop) > 0:
            return i
        previous = at
    return -1


@kernel
def head_words(offsets: Offsets, data: Bytes, skip: int, places: NDArray[np.int64], words: NDArray[np.uint64]) -> int:
    """Cut a word of 8 bytes out of values, the first byte the highest, zeros behind the end of a value.

    Args:
        offsets: Offsets of the values.
        data: Bytes of the values.
        skip: Number of bytes of each value before the word.
        places: int64 (n,), places of the values that words are cut from.
        words: uint64 (n,), written.

    Returns:
        A status.
    """
    size, count = len(data), len(offsets) - 1
    for i in range(len(places)):
        place = places[i]
        if place < 0 or place >= count:
            return status.BAD_OFFSETS | (i << 8)
        at, stop = np.int64(offsets[place]), np.int64(offsets[place + 1])
        if at < 0 or stop < at or stop > size:
            return status.BAD_OFFSETS | (i << 8)
        word = np.uint64(0)
        for j in range(at + skip, at + skip + 8):
            word = (word << np.uint64(8)) | (np.uint64(data[j]) if j < stop else np.uint64(0))
        words[i] = word
    return status.OK
