"""Kernels for variable-width values: join chunks, check offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, load_u32, load_u64

Offsets = NDArray[Any]
"""Value offsets, int32 or int64."""


@kernel
def join_variable(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    offsets: Offsets,
    out: Bytes,
) -> int:
    """Join buffers. Each buffer stores offsets, relative to its start, and then bytes.

    Args:
        data: Holds the buffers. Their extents are already checked, and each non-empty buffer has room for
            counts[i] + 1 offsets.
        starts: Byte offset of each buffer.
        sizes: Size of each buffer, in bytes.
        counts: Number of values of each buffer.
        width: Size of a stored offset, 4 or 8 bytes.
        offsets: (counts.sum() + 1,), output: offsets into `out`.
        out: Output, with room for all bytes that follow the offsets in the buffers.

    Returns:
        A status.
    """
    value = 0
    size: Any = np.int64(0)
    offsets[0] = 0
    for i in range(len(starts)):
        start = starts[i]
        count = counts[i]
        if count == 0:
            continue
        if width == 4:
            first = np.int64(load_u32(data, start))
            last = np.int64(load_u32(data, start + count * 4))
        else:
            first = np.int64(load_u64(data, start))
            last = np.int64(load_u64(data, start + count * 8))
        if first < (count + 1) * width or last < first or last > sizes[i]:
            return status.BAD_OFFSETS | (i << 8)
        shift = size - first
        previous = first
        descending: Any = False
        for j in range(count):
            if width == 4:
                offset = np.int64(load_u32(data, start + (j + 1) * 4))
            else:
                offset = np.int64(load_u64(data, start + (j + 1) * 8))
            descending |= offset < previous
            offsets[value + 1 + j] = offset + shift
            previous = offset
        if descending:
            return status.BAD_OFFSETS | (i << 8)
        copy(out, size, data, start + first, last - first)
        size += last - first
        value += count
    return status.OK


def join_variable_reference(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    offsets: Offsets,
    out: Bytes,
) -> int:
    """Reference implementation in plain Python."""
    value = size_so_far = 0
    offsets[0] = 0
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        if count == 0:
            continue
        table = np.frombuffer(data[start : start + (count + 1) * width].tobytes(), f"<u{width}").tolist()
        if table != sorted(table) or table[0] < (count + 1) * width or table[-1] > size:
            return status.BAD_OFFSETS | (i << 8)
        offsets[value + 1 : value + 1 + count] = [size_so_far + end - table[0] for end in table[1:]]
        value += count
        out[size_so_far : size_so_far + table[-1] - table[0]] = data[start + table[0] : start + table[-1]]
        size_so_far += table[-1] - table[0]
    return status.OK


@kernel
def ascending_within(offsets: Offsets, size: int) -> bool:
    """Return whether the offsets ascend between 0 and `size`. Returns False if there are no offsets."""
    if len(offsets) == 0:
        return False
    good: Any = offsets[0] >= 0 and offsets[len(offsets) - 1] <= size
    for i in range(len(offsets) - 1):
        good &= offsets[i] <= offsets[i + 1]
    return bool(good)


def ascending_within_reference(offsets: Offsets, size: int) -> bool:
    """Reference implementation in plain Python."""
    values = offsets.tolist()
    return bool(values) and values == sorted(values) and values[0] >= 0 and values[-1] <= size
