"""Kernels that cut values of any length into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, store_u8, store_u32, store_u64
from lance_duck.kernels.texts.variable import Offsets


@kernel
def cut_variable(offsets: Offsets, width: int, limit: int, most: int, counts: NDArray[np.int64]) -> int:
    """Find chunks of as many values, a power of two and at least two, as stay within `limit` bytes.

    The last chunk takes all remaining values as soon as they fit, and may have one value.

    Args:
        offsets: (values + 1,), ascending, of at least one value.
        width: Bytes of a stored offset.
        limit: Bytes of a chunk.
        most: Largest number of values of a chunk, a power of two, 2 or more.
        counts: Room for as many as values, written: number of values of each chunk.

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
    """Compute the plain reference, in Python."""
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
    """Write chunks: offsets from the start of the chunk, bytes of the values, zeros up to a multiple of `width`.

    Args:
        data: Bytes of the values; the offsets lie in it.
        offsets: (counts.sum() + 1,), ascending.
        counts: Number of values of each chunk.
        width: Bytes of a stored offset, 4 or 8.
        out: Room for all chunks, written.
        ends: One for each chunk, written: where its bytes end in `out`.
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
    """Compute the plain reference, in Python."""
    joined, first = b"", 0
    for i, count in enumerate(counts.tolist()):
        part = offsets[first : first + count + 1].astype(np.int64)
        head = part - part[0] + (count + 1) * width
        joined += head.astype(f"<u{width}").tobytes() + data[part[0] : part[-1]].tobytes()
        joined += bytes(-len(joined) % width)
        ends[i] = len(joined)
        first += count
    out[: len(joined)] = np.frombuffer(joined, np.uint8)
