"""Kernels for sorted binary values: search, order checks, and prefix words for sorting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes

Offsets = NDArray[Any]
"""Value offsets, int32 or int64: one more than there are values."""


@subroutine
def _compare(left: Bytes, a: Any, a_end: Any, right: Bytes, b: Any, b_end: Any) -> Any:
    """Compare two values bytewise, like memcmp. The caller has checked that both ranges lie inside their buffers."""
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
    """Find the insertion points of values in a sorted list.

    Args:
        offsets: Offsets of the sorted values.
        data: Bytes of the sorted values.
        targets: Offsets of the values to find.
        target_data: Bytes of the values to find.
        after_equal: Whether the insertion point is after equal values. If False, it is before them.
        places: int64, output: the number of sorted values before each target.

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
    """Return the index of the first value that is out of order or has bad offsets. Returns -1 if all values ascend."""
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
    """Read 8 bytes of each value as a word, most significant byte first. Shorter values are zero-padded.

    Args:
        offsets: Offsets of the values.
        data: Bytes of the values.
        skip: Number of leading bytes of each value to skip.
        places: int64 (n,), indices of the values to read.
        words: uint64 (n,), output.

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
