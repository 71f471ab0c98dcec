"""Kernels that unpack single values of FastLanes blocks. See `kernels/numbers/bitpacking.py` for their layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.bitpacking import (
    BLOCK,
    ORDER,
    ROW_BYTES,
    Word,
    load_word,
    unpack_block_reference,
    unpack_fixed_reference,
)

Int64s = NDArray[np.int64]


@subroutine
def _packed(data: Bytes, source: Any, place: int, width: int, size: int) -> np.uint64:
    """Return one value of the packed block at `source`. A value takes `width` bits, or `size` bytes unpacked."""
    if width == 0:
        return np.uint64(0)
    bits = size * 8
    rest = place & 127
    lane = rest % (BLOCK // bits)
    first = (ORDER[(rest - lane) >> 4] * 8 + (place >> 7)) * width  # ORDER is its own inverse
    word = first // bits
    shift = first - word * bits
    at = source + word * ROW_BYTES + lane * size
    value: Any = load_word(data, at, size) >> np.uint64(shift)
    if shift + width > bits:
        value |= load_word(data, at + ROW_BYTES, size) << np.uint64(bits - shift)
    if width < 64:
        value &= (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    return np.uint64(value)


@kernel
def unpack_some(data: Bytes, places: Int64s, starts: Int64s, sizes: Int64s, out: NDArray[Word]) -> int:
    """Unpack single values of blocks that each begin with their bit width, stored as a word.

    Args:
        data: Holds the buffers. Their extents are already checked.
        places: (n,), index of each value in its buffer.
        starts: (n,), byte offset of each value's buffer.
        sizes: (n,), size of that buffer in bytes.
        out: (n,), unsigned words of T bits, output.

    Returns:
        A status with the index of a value.
    """
    size = out.itemsize
    bits = size * 8
    for i in range(len(places)):
        source: Any = starts[i]
        end = source + sizes[i]
        place: Any = places[i]
        width: Any = np.int64(0)
        while True:
            if end - source < size:
                return status.TOO_SHORT | (i << 8)
            stored = load_word(data, source, size)
            if stored > np.uint64(bits):
                return status.BAD_WIDTH | (i << 8)
            width = np.int64(stored)
            source += size
            if end - source < width * ROW_BYTES:
                return status.TOO_SHORT | (i << 8)
            if place < BLOCK:
                break
            source += width * ROW_BYTES
            place -= BLOCK
        out[i] = _packed(data, source, place, width, size)
    return status.OK


def unpack_some_reference(data: Bytes, places: Int64s, starts: Int64s, sizes: Int64s, out: NDArray[Word]) -> int:
    """Reference implementation, by whole blocks."""
    word = out.itemsize
    scratch = np.empty(BLOCK, out.dtype)
    for i, (place, start, size) in enumerate(zip(places.tolist(), starts.tolist(), sizes.tolist(), strict=True)):
        buffer = data[start : start + size]
        for block in range(place // BLOCK + 1):
            if len(buffer) < word:
                return status.TOO_SHORT | (i << 8)
            width = int.from_bytes(buffer[:word].tobytes(), "little")
            if width > word * 8:
                return status.BAD_WIDTH | (i << 8)
            if len(buffer) < word + width * ROW_BYTES:
                return status.TOO_SHORT | (i << 8)
            if block == place // BLOCK:
                unpack_block_reference(scratch, 0, np.ascontiguousarray(buffer), word, width)
            buffer = buffer[word + width * ROW_BYTES :]
        out[i] = scratch[place % BLOCK]
    return status.OK


@kernel
def unpack_some_fixed(
    data: Bytes, places: Int64s, counts: Int64s, starts: Int64s, sizes: Int64s, width: int, out: NDArray[Word]
) -> int:
    """Unpack single values of blocks that share one bit width. The last block may consist of unpacked words.

    Takes the arguments of `unpack_some`, and two more. `counts` (n,) is the number of values in the buffer of each
    value.
    `width` is W, 1 to T. Returns a status like `unpack_some`.
    """
    size = out.itemsize
    packed = width * ROW_BYTES
    for i in range(len(places)):
        full = counts[i] // BLOCK
        tail = counts[i] - full * BLOCK
        raw = tail > 0 and sizes[i] == full * packed + tail * size
        if full > sizes[i] // packed or (not raw and sizes[i] < (full + (tail > 0)) * packed):
            return status.TOO_SHORT | (i << 8)
        block = places[i] // BLOCK
        place = places[i] - block * BLOCK
        if raw and block == full:
            out[i] = load_word(data, starts[i] + full * packed + place * size, size)
        else:
            out[i] = _packed(data, starts[i] + block * packed, place, width, size)
    return status.OK


def unpack_some_fixed_reference(
    data: Bytes, places: Int64s, counts: Int64s, starts: Int64s, sizes: Int64s, width: int, out: NDArray[Word]
) -> int:
    """Reference implementation, by whole buffers."""
    scratch = np.empty(BLOCK, out.dtype)
    for i, place in enumerate(places.tolist()):
        values = np.empty(int(counts[i]), out.dtype)
        one = slice(i, i + 1)
        if unpack_fixed_reference(data, starts[one], sizes[one], counts[one], width, values, scratch):
            return status.TOO_SHORT | (i << 8)
        out[i] = values[place]
    return status.OK
