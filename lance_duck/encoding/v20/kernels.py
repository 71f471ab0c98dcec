"""Kernels for the runs of a 2.0 page, each with a plain numpy reference.

A run is a range of adjacent values. Kernels take the first position and the length of each run. They check every
position against their buffers, and return a status instead of raising an error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.status import BAD_OFFSETS, OK, TOO_SHORT

Ints = NDArray[np.int64]
Unsigned = NDArray[np.unsignedinteger]


@kernel
def unpack_runs(src: Bytes, starts: Ints, counts: Ints, width: int, signed: bool, out: Unsigned) -> int:
    """Unpack runs of `width`-bit values. Bits are counted from the least significant bit of the first byte.

    Run i has counts[i] values and begins at bit starts[i] of src. Signed values are sign-extended to the width of out.
    Requires 1 <= width <= 64 and width <= bits of out.
    """
    bits = len(src) * 8
    mask = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - width)
    sign = np.uint64(1) << np.uint64(width - 1)
    at = 0
    for i in range(len(starts)):
        start, count = starts[i], counts[i]
        if start < 0 or count < 0 or start > bits or count > (bits - start) // width or count > len(out) - at:
            return TOO_SHORT
        for j in range(count):
            bit = start + j * width
            byte, shift = bit >> 3, bit & 7
            value = np.uint64(src[byte]) >> np.uint64(shift)
            have = 8 - shift
            while have < width:
                byte += 1
                value |= np.uint64(src[byte]) << np.uint64(have)
                have += 8
            value &= mask
            if signed and value & sign:
                value |= ~mask
            out[at + j] = value
        at += count
    return OK if at == len(out) else TOO_SHORT


def unpack_runs_reference(
    src: Bytes, starts: Ints, counts: Ints, width: int, signed: bool, dtype: np.dtype[np.unsignedinteger]
) -> Unsigned:
    """Return the result of `unpack_runs`, for positions inside `src`."""
    packed = int.from_bytes(src.tobytes(), "little")
    values = []
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        for j in range(count):
            value = (packed >> (start + j * width)) & ((1 << width) - 1)
            values.append(value - (1 << width) if signed and value >> (width - 1) else value)
    return np.array([value % (1 << (8 * dtype.itemsize)) for value in values], dtype)


@kernel
def unravel_ends(
    ends: NDArray[np.uint64],
    firsts: NDArray[np.bool_],
    counts: Ints,
    adjustment: np.uint64,
    limit: np.uint64,
    offsets: Ints,
    validity: Bytes,
    item_starts: Ints,
    item_stops: Ints,
) -> int:
    """Convert stored end offsets to offsets from 0, validity and the item extent of each run.

    Args:
        ends: For each run i, the end of the row before it (omitted if firsts[i] is true), then the ends of its
            counts[i] rows. An end of `adjustment` or more marks a null row, and its real end is smaller by
            `adjustment`.
        firsts: Whether run i begins at the first row of the page.
        counts: Number of rows of each run.
        adjustment: Number added to the ends of null rows, at least 1.
        limit: Exclusive upper bound of the items, less than 2**63.
        offsets: (counts.sum() + 1,), written.
        validity: (counts.sum(),), written: 0 or 1.
        item_starts: (runs,), written: first item of each run.
        item_stops: (runs,), written: one past the last item of each run.

    Returns:
        OK, TOO_SHORT (an item is at or beyond the limit) or BAD_OFFSETS (ends descend).
    """
    read, row, total = 0, 0, np.int64(0)
    if len(offsets) < 1 or len(offsets) != len(validity) + 1:
        return TOO_SHORT
    offsets[0] = 0
    for i in range(len(counts)):
        count = counts[i]
        if count < 0 or count > len(validity) - row or count + (0 if firsts[i] else 1) > len(ends) - read:
            return TOO_SHORT
        last = np.uint64(0)
        if not firsts[i]:
            last = ends[read]
            if last >= adjustment:
                last -= adjustment
            read += 1
        if last > limit:
            return TOO_SHORT
        if i > 0 and np.int64(last) < item_stops[i - 1]:
            return BAD_OFFSETS
        item_starts[i] = np.int64(last)
        for j in range(count):
            end = ends[read + j]
            valid = end < adjustment
            if not valid:
                end -= adjustment
            if end < last:
                return BAD_OFFSETS
            if end > limit:
                return TOO_SHORT
            total += np.int64(end - last)
            validity[row + j] = 1 if valid else 0
            offsets[row + j + 1] = total
            last = end
        item_stops[i] = np.int64(last)
        read += count
        row += count
    return OK if row == len(validity) and read == len(ends) else TOO_SHORT


def unravel_ends_reference(
    ends: NDArray[np.uint64], firsts: NDArray[np.bool_], counts: Ints, adjustment: int
) -> tuple[Ints, Bytes, Ints, Ints]:
    """Return (offsets, validity, item_starts, item_stops) like `unravel_ends`, for valid input."""
    valid = ends < np.uint64(adjustment)
    real = np.where(valid, ends, ends - np.uint64(adjustment)).astype(np.int64)
    lengths, validity, starts, stops = [], [], [], []
    at = 0
    for first, count in zip(firsts.tolist(), counts.tolist(), strict=True):
        size = count if first else count + 1
        run = real[at : at + size]
        run = np.concatenate([[0], run]) if first else run
        lengths.append(np.diff(run))
        validity.append(valid[at + size - count : at + size])
        starts.append(run[0])
        stops.append(run[-1])
        at += size
    offsets = np.concatenate([[0], np.cumsum(joined(lengths, np.int64))]).astype(np.int64)
    flags = joined(validity, np.bool_).astype(np.uint8)
    return offsets, flags, np.array(starts, np.int64), np.array(stops, np.int64)
