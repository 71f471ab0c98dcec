"""Kernels that gather values at arbitrary offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import (
    Bytes,
    copy,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
)
from lance_duck.kernels.texts.variable import Offsets


@kernel
def gather_fixed(data: Bytes, starts: NDArray[np.int64], width: int, out: Bytes) -> None:
    """Copy `width` bytes from each start.

    Args:
        data: Holds the values. The caller has checked 0 <= starts <= len(data) - width.
        starts: Byte offset of each value.
        width: Size of a value, in bytes.
        out: len(starts) * width bytes, output.
    """
    count = len(starts)
    if width == 1:
        for i in range(count):
            store_u8(out, i, load_u8(data, starts[i]))
    elif width == 2:
        for i in range(count):
            store_u16(out, i * 2, load_u16(data, starts[i]))
    elif width == 4:
        for i in range(count):
            store_u32(out, i * 4, load_u32(data, starts[i]))
    elif width == 8:
        for i in range(count):
            store_u64(out, i * 8, load_u64(data, starts[i]))
    elif width == 16:
        for i in range(count):
            store_u64(out, i * 16, load_u64(data, starts[i]))
            store_u64(out, i * 16 + 8, load_u64(data, starts[i] + 8))
    else:
        for i in range(count):
            copy(out, i * width, data, starts[i], width)


def gather_fixed_reference(data: Bytes, starts: NDArray[np.int64], width: int, out: Bytes) -> None:
    """Reference implementation in plain Python."""
    out.reshape(len(starts), width)[:] = data[starts[:, None] + np.arange(width)]


@kernel
def look_up_fixed(items: Bytes, count: int, width: int, indices: NDArray[Any], out: Bytes) -> int:
    """Copy the dictionary entry of each index.

    Args:
        items: count * width bytes.
        count: Number of dictionary entries.
        width: Size of an entry, in bytes.
        indices: Unsigned integers.
        out: len(indices) * width bytes, output.

    Returns:
        A status.
    """
    for i in range(len(indices)):
        if np.uint64(indices[i]) >= np.uint64(count):
            return status.BAD_OFFSETS | (i << 8)
    if width == 4:
        for i in range(len(indices)):
            store_u32(out, i * 4, load_u32(items, np.int64(indices[i]) * 4))
    elif width == 8:
        for i in range(len(indices)):
            store_u64(out, i * 8, load_u64(items, np.int64(indices[i]) * 8))
    elif width == 16:
        for i in range(len(indices)):
            place = np.int64(indices[i]) * 16
            store_u64(out, i * 16, load_u64(items, place))
            store_u64(out, i * 16 + 8, load_u64(items, place + 8))
    else:
        for i in range(len(indices)):
            copy(out, i * width, items, np.int64(indices[i]) * width, width)
    return status.OK


def look_up_fixed_reference(items: Bytes, count: int, width: int, indices: NDArray[Any], out: Bytes) -> int:
    """Reference implementation in plain Python."""
    outside = np.flatnonzero(indices >= count)
    if len(outside):
        return status.BAD_OFFSETS | (int(outside[0]) << 8)
    out.reshape(len(indices), width)[:] = items.reshape(count, width)[indices]
    return status.OK


@kernel
def gather_variable(data: Bytes, starts: NDArray[np.int64], offsets: Offsets, out: Bytes) -> None:
    """Copy offsets[i + 1] - offsets[i] bytes from each start to out[offsets[i]:].

    Args:
        data: Holds the values. The caller has checked their extents. An empty value may start anywhere.
        starts: Byte offset of each value.
        offsets: (values + 1,), ascending from 0.
        out: offsets[-1] bytes, output.
    """
    whole = len(data) - 8
    room = len(out) - 8
    for i in range(len(starts)):
        place: Any = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - place
        start = starts[i]
        if size <= 32 and start >= 0 and start + size <= whole and place + size <= room:
            for j in range(0, size, 8):
                store_u64(out, place + j, load_u64(data, start + j))
        elif size > 0:
            copy(out, place, data, start, size)


def gather_variable_reference(data: Bytes, starts: NDArray[np.int64], offsets: Offsets, out: Bytes) -> None:
    """Reference implementation in plain Python."""
    for i, start in enumerate(starts.tolist()):
        place, end = int(offsets[i]), int(offsets[i + 1])
        if end > place:
            out[place:end] = data[start : start + end - place]


@kernel
def select_extents(
    offsets: Offsets, indices: NDArray[np.int64], size: int, starts: NDArray[np.int64], ends: Offsets
) -> int:
    """Write the start of each value at `indices`, and the end of each value in their concatenation.

    Args:
        offsets: Offsets of all values. The caller has checked the indices against them.
        indices: (n,), indices of the values.
        size: Size of the data, in bytes.
        starts: int64 (n,), output.
        ends: (n + 1,), output.

    Returns:
        A status.
    """
    ends[0] = 0
    for i in range(len(indices)):
        start = np.int64(offsets[indices[i]])
        end = np.int64(offsets[indices[i] + 1])
        if start < 0 or end < start or end > size:
            return status.BAD_OFFSETS | (i << 8)
        starts[i] = start
        ends[i + 1] = ends[i] + (end - start)
    return status.OK


def select_extents_reference(
    offsets: Offsets, indices: NDArray[np.int64], size: int, starts: NDArray[np.int64], ends: Offsets
) -> int:
    """Reference implementation in plain Python."""
    starts[:] = offsets[indices]
    stops = offsets[indices + 1].astype(np.int64)
    bad = (starts < 0) | (stops < starts) | (stops > size)
    if bad.any():
        return status.BAD_OFFSETS | (int(bad.argmax()) << 8)
    ends[0] = 0
    np.cumsum(stops - starts, out=ends[1:])
    return status.OK
