"""Kernel that expands runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Bytes
from lance_duck.encoding.kernels import status
from lance_duck.encoding.kernels.jit import kernel
from lance_duck.encoding.kernels.memory import load_u8, load_u16, load_u32, load_u64


@kernel
def expand_runs(
    data: Bytes,
    values: NDArray[np.int64],
    lengths: NDArray[np.int64],
    runs: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[Any],
) -> int:
    """Expands the runs of chunks; what they hold beyond a chunk's count is left out.

    Args:
        data: Holds the buffers; the extents have been checked.
        values: Byte offset of each chunk's run values, each a word of out's type.
        lengths: Byte offset of each chunk's run lengths, each a byte.
        runs: Runs in each chunk.
        ends: Where in `out` each chunk ends; ascending.
        out: Unsigned words, written.

    Returns:
        A status.
    """
    size = out.itemsize
    place: Any = np.int64(0)
    for i in range(len(values)):
        end = ends[i]
        run = 0
        while place < end:
            if run >= runs[i]:
                return status.BAD_RUNS | (i << 8)
            if size == 1:
                word = np.uint64(load_u8(data, values[i] + run))
            elif size == 2:
                word = np.uint64(load_u16(data, values[i] + run * 2))
            elif size == 4:
                word = np.uint64(load_u32(data, values[i] + run * 4))
            else:
                word = load_u64(data, values[i] + run * 8)
            stop = min(end, place + np.int64(load_u8(data, lengths[i] + run)))
            for j in range(place, stop):
                out[j] = word
            place = stop
            run += 1
    return status.OK


def expand_runs_reference(
    data: Bytes,
    values: NDArray[np.int64],
    lengths: NDArray[np.int64],
    runs: NDArray[np.int64],
    ends: NDArray[np.int64],
    out: NDArray[Any],
) -> int:
    """The same, plainly."""
    place = 0
    chunks = zip(values.tolist(), lengths.tolist(), runs.tolist(), ends.tolist(), strict=True)
    for i, (first, length, count, end) in enumerate(chunks):
        words = np.frombuffer(data[first : first + count * out.itemsize].tobytes(), out.dtype)
        expanded = np.repeat(words, data[length : length + count])[: end - place]
        if len(expanded) < end - place:
            return status.BAD_RUNS | (i << 8)
        out[place:end] = expanded
        place = end
    return status.OK
