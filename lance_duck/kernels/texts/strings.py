"""Kernels for Arrow strings: dictionary lookup, ASCII detection, string views.

The caller checks the indices. A string view has 16 bytes, little-endian:

    offset | size | field
    0      | 4    | length
    4      | 12   | the value, zero-padded, if it has at most 12 bytes; otherwise:
    4      | 4    | prefix: the first bytes
    8      | 4    | number of the data buffer
    12     | 4    | offset in that buffer
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, load_u8, load_u32, load_u64, store_u64

Indices = NDArray[np.unsignedinteger[Any]]
Offsets = NDArray[np.int32] | NDArray[np.int64]
SLACK = 16


@kernel
def expand_offsets(ends: Offsets, indices: Indices, offsets: Offsets) -> None:
    """Write the offsets of the indexed items, beginning with 0. `ends` (items + 1,) holds the offsets of all items."""
    place = np.int64(0)
    offsets[0] = place
    for i in range(len(indices)):
        item = np.int64(indices[i])
        place += np.int64(ends[item + 1]) - np.int64(ends[item])
        offsets[i + 1] = place


def expand_offsets_reference(ends: Offsets, indices: Indices, offsets: Offsets) -> None:
    """Reference implementation in plain Python."""
    offsets[0] = 0
    np.cumsum(np.diff(ends)[indices], out=offsets[1:])


@kernel
def expand_bytes(data: Bytes, ends: Offsets, indices: Indices, offsets: Offsets, out: Bytes) -> None:
    """Write each indexed item's bytes at its offset. `out` has SLACK bytes more than the items take."""
    whole = len(data) - SLACK
    for i in range(len(indices)):
        item = np.int64(indices[i])
        start: Any = np.int64(ends[item])
        size = np.int64(ends[item + 1]) - start
        place = np.int64(offsets[i])
        if size <= SLACK and start <= whole:
            store_u64(out, place, load_u64(data, start))
            store_u64(out, place + 8, load_u64(data, start + 8))
        else:
            copy(out, place, data, start, size)


def expand_bytes_reference(data: Bytes, ends: Offsets, indices: Indices, offsets: Offsets, out: Bytes) -> None:
    """Reference implementation in plain Python."""
    for i, item in enumerate(indices.tolist()):
        out[offsets[i] : offsets[i + 1]] = data[ends[item] : ends[item + 1]]


@kernel
def expand_views(views: NDArray[np.uint64], indices: Indices, out: NDArray[np.uint64]) -> None:
    """Write each indexed item's view. See `string_views`."""
    for i in range(len(indices)):
        item = np.int64(indices[i])
        out[i, 0] = views[item, 0]
        out[i, 1] = views[item, 1]


def expand_views_reference(views: NDArray[np.uint64], indices: Indices, out: NDArray[np.uint64]) -> None:
    """Reference implementation in plain Python."""
    out[:] = views[indices]


_HIGH_BITS = 0x8080808080808080
_STRIDE = 1 << 16


@kernel
def is_ascii(data: Bytes) -> bool:
    """Return whether all bytes are below 128."""
    size = len(data)
    place = 0
    while place + 8 <= size:
        bits: Any = np.uint64(0)
        end = min(place + _STRIDE, size - 7)
        for at in range(place, end, 8):
            bits |= load_u64(data, at)
        if bits & np.uint64(_HIGH_BITS):
            return False
        place += (end - place + 7) // 8 * 8
    last = np.uint8(0)
    for at in range(place, size):
        last |= data[at]
    return bool(last < 128)


def is_ascii_reference(data: Bytes) -> bool:
    """Reference implementation in plain Python."""
    return data.tobytes().isascii()


INLINE = 12


@kernel
def string_views(data: Bytes, offsets: NDArray[np.integer], views: NDArray[np.uint64]) -> bool:
    """Write the view of each value. Returns False if the offsets do not ascend within `data`.

    Args:
        data: uint8, less than 2 GiB.
        offsets: (n + 1,).
        views: uint64 (n, 2), output.
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
    """Reference implementation. Returns the views of all values."""
    parts = []
    for start, stop in pairwise(offsets):
        value = data[start:stop]
        head = len(value).to_bytes(4, "little")
        long = value[:4] + bytes(4) + start.to_bytes(4, "little")
        parts.append(head + (value.ljust(INLINE, b"\0") if len(value) <= INLINE else long))
    return b"".join(parts)
