"""Kernel that expands runs.

A run is written as an 8-byte pattern, 64 bytes at a time. Most runs take a single step, which avoids mispredicted
branches. The next run overwrites surplus bytes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u8, load_u16, load_u32, load_u64, store_u64

STEP: Final = 64
SLACK: Final = STEP


@subroutine
def _pattern(data: Bytes, place: int, width: int) -> np.uint64:
    """Return 8 bytes that repeat a value."""
    if width == 1:
        return np.uint64(load_u8(data, place)) * np.uint64(0x0101010101010101)
    if width == 2:
        return np.uint64(load_u16(data, place)) * np.uint64(0x0001000100010001)
    if width == 4:
        return np.uint64(load_u32(data, place)) * np.uint64(0x0000000100000001)
    return np.uint64(load_u64(data, place))


@kernel
def expand_runs(
    data: Bytes,
    values: NDArray[np.int64],
    lengths: NDArray[np.int64],
    runs: NDArray[np.int64],
    ends: NDArray[np.int64],
    width: int,
    out: Bytes,
) -> int:
    """Expand the runs of chunks. Values beyond a chunk's count are dropped.

    Args:
        data: Holds the buffers. Their extents are already checked.
        values: Byte offset of each chunk's run values.
        lengths: Byte offset of each chunk's run lengths, one byte each.
        runs: Number of runs in each chunk.
        ends: End of each chunk in the output, counted in values; ascending.
        width: Size of a value in bytes: 1, 2, 4 or 8.
        out: ends[-1] * width + SLACK bytes, output.

    Returns:
        A status.
    """
    place: Any = np.int64(0)
    for i in range(len(values)):
        end = ends[i] * width
        run = 0
        while place < end:
            if run >= runs[i]:
                return status.BAD_RUNS | (i << 8)
            pattern = _pattern(data, values[i] + run * width, width)
            stop = min(end, place + np.int64(load_u8(data, lengths[i] + run)) * width)
            while True:
                store_u64(out, place, pattern)
                store_u64(out, place + 8, pattern)
                store_u64(out, place + 16, pattern)
                store_u64(out, place + 24, pattern)
                store_u64(out, place + 32, pattern)
                store_u64(out, place + 40, pattern)
                store_u64(out, place + 48, pattern)
                store_u64(out, place + 56, pattern)
                place += STEP
                if place >= stop:
                    break
            place = stop
            run += 1
    return status.OK


def expand_runs_reference(
    data: Bytes,
    values: NDArray[np.int64],
    lengths: NDArray[np.int64],
    runs: NDArray[np.int64],
    ends: NDArray[np.int64],
    width: int,
    out: Bytes,
) -> int:
    """Reference implementation in plain Python."""
    place = 0
    chunks = zip(values.tolist(), lengths.tolist(), runs.tolist(), ends.tolist(), strict=True)
    for i, (first, length, count, end) in enumerate(chunks):
        words = np.frombuffer(data[first : first + count * width].tobytes(), f"<u{width}")
        expanded = np.repeat(words, data[length : length + count])[: end - place]
        if len(expanded) < end - place:
            return status.BAD_RUNS | (i << 8)
        out[place * width : end * width] = expanded.view(np.uint8)
        place = end
    return status.OK
