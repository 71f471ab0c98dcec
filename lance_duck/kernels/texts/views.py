"""Kernel of string views: 16 bytes for each value, as Arrow lays them out (little-endian).

offset | size | field
0      | 4    | length
4      | 12   | the value, padded with zeros, when it has at most 12 bytes; else:
4      | 4    | its first bytes
8      | 4    | number of the data buffer
12     | 4    | offset in it
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u8, load_u32, load_u64

INLINE = 12


@kernel
def string_views(data: Bytes, offsets: NDArray[np.integer], views: NDArray[np.uint64]) -> bool:
    """Write the view of each value; return False when offsets do not ascend within `data`.

    Args:
        data: uint8, less than 2 GiB.
        offsets: (n + 1,).
        views: uint64 (n, 2), written.
    """
    size = np.int64(len(data))
    start = np.int64(offsets[0])
    if start < 0:
        return False
    for i in range(len(offsets) - 1):
        stop = np.int64(offsets[i + 1])
        length = stop - start
        if length < 0 or stop > size:
            return False
        low, high = np.uint64(0), np.uint64(0)
        if length > INLINE:
            low = np.uint64(load_u32(data, start))
            high = np.uint64(start) << np.uint64(32)
        elif start + INLINE <= size:
            low = np.uint64(load_u32(data, start))
            high = load_u64(data, start + 4)
            if length <= 4:
                high = np.uint64(0)
                low &= (np.uint64(1) << np.uint64(8 * length)) - np.uint64(1)
            elif length < INLINE:
                high &= (np.uint64(1) << np.uint64(8 * (length - 4))) - np.uint64(1)
        else:
            for j in range(length):
                byte = np.uint64(load_u8(data, start + j))
                if j < 4:
                    low |= byte << np.uint64(8 * j)
                else:
                    high |= byte << np.uint64(8 * (j - 4))
        views[i, 0] = np.uint64(length) | (low << np.uint64(32))
        views[i, 1] = high
        start = stop
    return True


def string_views_reference(data: bytes, offsets: list[int]) -> bytes:
    """Compute the plain reference: the views of all values."""
    parts = []
    for start, stop in pairwise(offsets):
        value = data[start:stop]
        head = len(value).to_bytes(4, "little")
        long = value[:4] + bytes(4) + start.to_bytes(4, "little")
        parts.append(head + (value.ljust(INLINE, b"\0") if len(value) <= INLINE else long))
    return b"".join(parts)
