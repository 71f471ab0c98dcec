"""Kernels for byte stream split encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u8


@subroutine
def _four(data: Bytes, place: int, stride: int) -> np.uint32:
    value = np.uint32(load_u8(data, place))
    value |= np.uint32(load_u8(data, place + stride)) << np.uint32(8)
    value |= np.uint32(load_u8(data, place + 2 * stride)) << np.uint32(16)
    value |= np.uint32(load_u8(data, place + 3 * stride)) << np.uint32(24)
    return np.uint32(value)


@kernel
def join_streams(data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], out: NDArray[Any]) -> None:
    """Join byte streams into values.

    Args:
        data: Holds the buffers, whose extents are already checked. Each buffer stores stream 0 (the lowest bytes), then
            stream 1, and so on.
        starts: Byte offset of each buffer.
        counts: Number of values of each buffer.
        out: counts.sum() uint32 or uint64, output.
    """
    place = 0
    for i in range(len(starts)):
        n = counts[i]
        start = starts[i]
        if out.itemsize == 4:
            for j in range(n):
                out[place + j] = _four(data, start + j, n)
        else:
            for j in range(n):
                high = np.uint64(_four(data, start + 4 * n + j, n))
                out[place + j] = np.uint64(_four(data, start + j, n)) | high << np.uint64(32)
        place += n


def join_streams_reference(
    data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Reference implementation in plain Python."""
    place = 0
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        streams = data[start : start + count * out.itemsize].reshape(out.itemsize, count)
        out[place : place + count] = np.ascontiguousarray(streams.T).view(out.dtype).ravel()
        place += count


@kernel
def split_streams(data: Bytes, width: int, counts: NDArray[np.int64], out: Bytes) -> None:
    """Split values into byte streams, chunk by chunk.

    Args:
        data: counts.sum() values of `width` bytes.
        width: Size of a value, in bytes.
        counts: Number of values of each chunk.
        out: counts.sum() * width bytes, output.
    """
    place = 0
    for i in range(len(counts)):
        n = counts[i]
        for k in range(width):
            for j in range(n):
                out[place + k * n + j] = data[place + j * width + k]
        place += n * width


def split_streams_reference(data: Bytes, width: int, counts: NDArray[np.int64], out: Bytes) -> None:
    """Reference implementation in plain Python."""
    place = 0
    for count in counts.tolist():
        size = count * width
        out[place : place + size] = data[place : place + size].reshape(count, width).T.reshape(-1)
        place += size
