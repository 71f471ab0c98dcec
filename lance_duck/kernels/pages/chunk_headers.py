"""Kernels for the chunks of miniblock pages. `encoding.layouts.chunks` describes their bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u16, load_u32

Int64s = NDArray[np.int64]


@kernel
def read_headers(
    data: Bytes,
    begins: Int64s,
    lengths: Int64s,
    levels: int,
    buffers: int,
    width: int,
    starts: Int64s,
    sizes: Int64s,
    counts: Int64s,
) -> bool:
    """Find the buffers of chunks.

    Args:
        data: Holds the chunks. Their extents are already checked.
        begins: (k,), byte offset of each chunk.
        lengths: (k,), size of each chunk in bytes.
        levels: Number of level buffers in a chunk.
        buffers: Number of value buffers in a chunk.
        width: Number of bytes in which a buffer's size is stored: 2 or 4.
        starts: (levels + buffers, k), output: byte offset of each buffer.
        sizes: (levels + buffers, k), output: size of each buffer in bytes.
        counts: (k,), output: number of levels of each chunk.

    Returns:
        False if a header or a buffer extends past its chunk.
    """
    header = 2 + 2 * levels + width * buffers
    for chunk in range(len(begins)):
        begin, end = begins[chunk], begins[chunk] + lengths[chunk]
        if end - begin < header:
            return False
        counts[chunk] = load_u16(data, begin)
        at = begin + ((header + 7) & ~7)
        for i in range(levels + buffers):
            if i < levels or width == 2:
                size = np.int64(load_u16(data, begin + 2 + 2 * i))
            else:
                size = np.int64(load_u32(data, begin + 2 + 2 * levels + 4 * (i - levels)))
            if at + size > end:
                return False
            starts[i, chunk] = at
            sizes[i, chunk] = size
            at += (size + 7) & ~7
    return True


def read_headers_reference(
    data: Bytes,
    begins: Int64s,
    lengths: Int64s,
    levels: int,
    buffers: int,
    width: int,
    starts: Int64s,
    sizes: Int64s,
    counts: Int64s,
) -> bool:
    """Reference implementation in plain Python."""
    for chunk, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
        header = data[begin : begin + length].tobytes()
        fields = [2] * (1 + levels) + [width] * buffers
        if len(header) < sum(fields):
            return False
        numbers, at = [], 0
        for size in fields:
            numbers.append(int.from_bytes(header[at : at + size], "little"))
            at += size
        counts[chunk] = numbers[0]
        at += -at % 8
        for i, size in enumerate(numbers[1:]):
            if at + size > length:
                return False
            starts[i, chunk], sizes[i, chunk] = begin + at, size
            at += size + -size % 8
    return True


@kernel
def group_by_chunk(rows: Int64s, items: Int64s, chunks: Int64s, chunk: Int64s, place: Int64s) -> int:
    """Find the chunks that contain rows.

    Args:
        rows: (n,), ascending row numbers, at least items[0] and less than items[-1].
        items: (k + 1,), number of rows before each chunk, ascending.
        chunks: (min(n, k),), output: the chunks, ascending, each once.
        chunk: (n,), output: index of each row's chunk in `chunks`.
        place: (n,), output: position of each row in its chunk.

    Returns:
        The number of chunks found.
    """
    found = 0
    at = -1
    end = np.int64(-1)
    for i in range(len(rows)):
        row = rows[i]
        if row >= end:
            while at + 2 < len(items) and items[at + 1] <= row:
                at += 1
            end = items[at + 1]
            chunks[found] = at
            found += 1
        chunk[i] = found - 1
        place[i] = row - items[at]
    return found


def group_by_chunk_reference(rows: Int64s, items: Int64s, chunks: Int64s, chunk: Int64s, place: Int64s) -> int:
    """Reference implementation in numpy."""
    of_row = items.searchsorted(rows, side="right") - 1
    found, inverse = np.unique(of_row, return_inverse=True)
    chunks[: len(found)] = found
    chunk[:] = inverse
    place[:] = rows - items[of_row]
    return len(found)
