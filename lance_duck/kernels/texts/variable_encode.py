"""Kernels that split variable-width values into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, store_u8, store_u32, store_u64
from lance_duck.kernels.texts.variable import Offsets


@kernel
def cut_variable(offsets: Offsets, width: int, limit: int, most: int, counts: NDArray[np.int64]) -> int:
    """Split values into chunks. A chunk's value count is the largest power of two that fits into `limit` bytes.

    A chunk has at least two values. The last chunk takes all remaining values if they fit, and may have a single value.

    Args:
        offsets: (values + 1,), ascending, for at least one value.
        width: Size of a stored offset, in bytes.
        limit: Maximum size of a chunk, in bytes.
        most: Maximum number of values of a chunk, a power of two, 2 or more.
        counts: Output: number of values of each chunk. Has one slot per value.

    Returns:
        Number of chunks.
    """
    total = len(offsets) - 1
    first = 0
    chunks = 0
    guess = 1
    while first < total:
        rest = total - first
        begin = np.int64(offsets[first])
        if rest <= most and np.int64(offsets[total]) - begin + (rest + 1) * width <= limit:
            counts[chunks] = rest
            return chunks + 1
        guess = min(guess * 2, most)
        while guess > 2 and (guess > rest or np.int64(offsets[first + guess]) - begin + (guess + 1) * width > limit):
            guess //= 2
        guess = min(max(guess, 2), rest)
        if guess < most:
            more = guess * 2
            while (
                more <= most and more <= rest and np.int64(offsets[first + more]) - begin + (more + 1) * width <= limit
            ):
                guess = more
                more *= 2
        counts[chunks] = guess
        chunks += 1
        first += guess
    return chunks


def cut_variable_reference(offsets: Offsets, width: int, limit: int, most: int, counts: NDArray[np.int64]) -> int:
    """Reference implementation in plain Python."""
    values = offsets.tolist()
    total, first, chunks = len(values) - 1, 0, 0

    def fits(count: int) -> bool:
        return count <= most and values[first + count] - values[first] + (count + 1) * width <= limit

    while first < total:
        sizes = [1 << i for i in range((total - first).bit_length())]
        count = total - first if fits(total - first) else max(filter(fits, sizes), default=min(2, total - first))
        count = max(count, min(2, total - first))
        counts[chunks] = count
        first += count
        chunks += 1
    return chunks


@kernel
def split_variable(
    data: Bytes, offsets: Offsets, counts: NDArray[np.int64], width: int, out: Bytes, ends: NDArray[np.int64]
) -> None:
    """Write chunks: offsets from the start of the chunk, value bytes, zero padding to a multiple of `width`.

    Args:
        data: Bytes of the values. The offsets lie within it.
        offsets: (counts.sum() + 1,), ascending.
        counts: Number of values of each chunk.
        width: Size of a stored offset, 4 or 8 bytes.
        out: Output, with room for all chunks.
        ends: Output: end of each chunk in `out`.
    """
    place = 0
    first = 0
    for i in range(len(counts)):
        count = counts[i]
        begin: Any = np.int64(offsets[first])
        size = np.int64(offsets[first + count]) - begin
        head = (count + 1) * width
        if width == 4:
            for j in range(count + 1):
                store_u32(out, place + 4 * j, np.uint32(np.int64(offsets[first + j]) - begin + head))
        else:
            for j in range(count + 1):
                store_u64(out, place + 8 * j, np.uint64(np.int64(offsets[first + j]) - begin + head))
        place += head
        copy(out, place, data, begin, size)
        place += size
        while place % width:
            store_u8(out, place, np.uint8(0))
            place += 1
        ends[i] = place
        first += count


def split_variable_reference(
    data: Bytes, offsets: Offsets, counts: NDArray[np.int64], width: int, out: Bytes, ends: NDArray[np.int64]
) -> None:
    """Reference implementation in plain Python."""
    joined, first = b"", 0
    for i, count in enumerate(counts.tolist()):
        part = offsets[first : first + count + 1].astype(np.int64)
        head = part - part[0] + (count + 1) * width
        joined += head.astype(f"<u{width}").tobytes() + data[part[0] : part[-1]].tobytes()
        joined += bytes(-len(joined) % width)
        ends[i] = len(joined)
        first += count
    out[: len(joined)] = np.frombuffer(joined, np.uint8)
