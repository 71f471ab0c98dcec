"""Kernels that find single values in miniblock chunks without reading the rest of the chunks.

`encoding.layouts.chunks` describes chunk headers, `encoding.codecs.variable` describes offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u16, load_u32, load_u64

Int64s = NDArray[np.int64]


@kernel
def find_values(
    data: Bytes, offsets: Int64s, items: Int64s, rows: Int64s, levels: int, width: int, places: Int64s
) -> int:
    """Find the chunks that contain the given rows, and the buffers of these chunks. A chunk has one value buffer.

    Args:
        data: All chunks of a page.
        offsets: (k + 1,), byte offset of each chunk. They are already checked to lie within `data`.
        items: (k + 1,), number of rows before each chunk, ascending from 0.
        rows: (n,), row numbers in any order.
        levels: Number of level buffers in a chunk, 0 or 1.
        width: Number of bytes in which a buffer's size is stored: 2 or 4.
        places: (6, n), output, for each row: its index in the chunk, the chunk's value count, the start and size of
            the value buffer, the start and size of the level buffer if there is one.

    Returns:
        A status with the index of a row.
    """
    header = 2 + 2 * levels + width
    last = len(items) - 1
    for i in range(len(rows)):
        row = rows[i]
        if row < 0 or row >= items[last]:
            return status.BAD_OFFSETS | (i << 8)
        low: Any = np.int64(0)
        high: Any = np.int64(last)
        while high - low > 1:
            middle = (low + high) >> 1
            if items[middle] <= row:
                low = middle
            else:
                high = middle
        begin, end = offsets[low], offsets[low + 1]
        if end - begin < header:
            return status.TOO_SHORT | (i << 8)
        at: Any = begin + ((header + 7) & ~7)
        if levels:
            size = np.int64(load_u16(data, begin + 2))
            if at + size > end or np.int64(load_u16(data, begin)) != items[low + 1] - items[low]:
                return status.TOO_SHORT | (i << 8)
            places[4, i] = at
            places[5, i] = size
            at += (size + 7) & ~7
        place = begin + 2 + 2 * levels
        size = np.int64(load_u16(data, place)) if width == 2 else np.int64(load_u32(data, place))
        if at + size > end:
            return status.TOO_SHORT | (i << 8)
        places[0, i] = row - items[low]
        places[1, i] = items[low + 1] - items[low]
        places[2, i] = at
        places[3, i] = size
    return status.OK


def find_values_reference(
    data: Bytes, offsets: Int64s, items: Int64s, rows: Int64s, levels: int, width: int, places: NDArray[np.int64]
) -> int:
    """Reference implementation in plain Python."""
    for i, row in enumerate(rows.tolist()):
        if not 0 <= row < items[-1]:
            return status.BAD_OFFSETS | (i << 8)
        chunk = int(items.searchsorted(row, side="right")) - 1
        begin, end = int(offsets[chunk]), int(offsets[chunk + 1])
        fields = [2] * (1 + levels) + [width]
        if end - begin < sum(fields):
            return status.TOO_SHORT | (i << 8)
        at, sizes = begin, []
        for size in fields:
            sizes.append(int.from_bytes(data[at : at + size].tobytes(), "little"))
            at += size
        at = begin + sum(fields) + -sum(fields) % 8
        if levels:
            if at + sizes[1] > end or sizes[0] != items[chunk + 1] - items[chunk]:
                return status.TOO_SHORT | (i << 8)
            places[4:, i] = at, sizes[1]
            at += sizes[1] + -sizes[1] % 8
        if at + sizes[-1] > end:
            return status.TOO_SHORT | (i << 8)
        places[:4, i] = row - int(items[chunk]), int(items[chunk + 1] - items[chunk]), at, sizes[-1]
    return status.OK


@kernel
def find_texts(
    data: Bytes, places: Int64s, starts: Int64s, sizes: Int64s, width: int, begins: Int64s, ends: Int64s
) -> int:
    """Find variable-width values in their buffers.

    Args:
        data: Holds the buffers. Their extents are already checked.
        places: (n,), index of each value in its buffer.
        starts: (n,), byte offset of each value's buffer.
        sizes: (n,), size of that buffer in bytes.
        width: Size of an offset, in bytes: 4 or 8.
        begins: (n,), output: byte offset of each value in `data`.
        ends: (n + 1,), output: offsets of the concatenated values: 0, then the end of each value.

    Returns:
        A status with the index of a value.
    """
    ends[0] = 0
    for i in range(len(places)):
        start, size, at = starts[i], sizes[i], places[i] * width
        if places[i] > size // width - 2:
            return status.TOO_SHORT | (i << 8)
        if width == 4:
            first = np.int64(load_u32(data, start + at))
            last = np.int64(load_u32(data, start + at + 4))
        else:
            first = np.int64(load_u64(data, start + at))
            last = np.int64(load_u64(data, start + at + 8))
        if first < 0 or last < first or last > size:
            return status.BAD_OFFSETS | (i << 8)
        begins[i] = start + first
        ends[i + 1] = ends[i] + (last - first)
    return status.OK


def find_texts_reference(
    data: Bytes, places: Int64s, starts: Int64s, sizes: Int64s, width: int, begins: Int64s, ends: Int64s
) -> int:
    """Reference implementation in plain Python."""
    ends[0] = 0
    for i, (place, start, size) in enumerate(zip(places.tolist(), starts.tolist(), sizes.tolist(), strict=True)):
        pair = data[start : start + size][place * width : (place + 2) * width].tobytes()
        if len(pair) < 2 * width:
            return status.TOO_SHORT | (i << 8)
        first, last = np.frombuffer(pair, f"<i{width}" if width == 8 else "<u4").tolist()
        if not 0 <= first <= last <= size:
            return status.BAD_OFFSETS | (i << 8)
        begins[i] = start + first
        ends[i + 1] = ends[i] + last - first
    return status.OK
