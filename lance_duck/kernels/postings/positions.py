"""Kernels for positions. `index.inverted.codecs.positions` describes their bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, as_readonly, load_u32, store_u8, store_u32
from lance_duck.kernels.postings.lanes import unpack_lanes
from lance_duck.kernels.postings.packing import bits_of, pack_lanes, read_varint, write_varint

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]

GROUP: Final = 128
LANES: Final = 4


@kernel
def decode_positions(
    data: Bytes,
    terms: Int64s,
    starts: Int64s,
    lists: Int64s,
    bounds: Int64s,
    frequencies: UInt32s,
    block_size: int,
    has_groups: bool,
    positions: UInt32s,
) -> int:
    """Decode the positions of terms, concatenated in the order of the terms.

    Args:
        data: Bytes of all terms.
        terms: Byte offset of each term, and the end of the last one.
        starts: Offset of each block from the start of its term.
        lists: (terms + 1,), first block of each term, and the total block count.
        bounds: First posting of each term, and the end of the last term.
        frequencies: Number of positions of each posting.
        block_size: Number of postings of a block.
        has_groups: Whether every 128 numbers of a block are packed as a group. If False, all numbers are varints.
        positions: (frequencies.sum(),), output: ascending for each posting.

    Returns:
        A status with the index of a term.
    """
    place = np.int64(0)
    for term in range(len(bounds) - 1):
        low, high, first, last = terms[term], terms[term + 1], lists[term], lists[term + 1]
        if low < 0 or high < low or high > len(data) or first < 0 or last < first or last > len(starts):
            return status.BAD_OFFSETS | (term << 8)
        if bounds[term + 1] < bounds[term] or bounds[term + 1] > len(frequencies):
            return status.BAD_OFFSETS | (term << 8)
        if -((bounds[term] - bounds[term + 1]) // block_size) != last - first:
            return status.BAD_LENGTH | (term << 8)
        for block in range(first, last):
            posting = bounds[term] + (block - first) * block_size
            stop = min(posting + block_size, bounds[term + 1])
            begin = low + starts[block]
            end = low + starts[block + 1] if block + 1 < last else high
            if begin < low or end < begin or end > high:
                return status.BAD_OFFSETS | (term << 8)
            count = np.int64(0)
            for i in range(posting, stop):
                count += np.int64(frequencies[i])
            if count > len(positions) - place:
                return status.BAD_LENGTH | (term << 8)
            code = _decode_deltas(data, begin, end, count, has_groups, positions, place)
            if code == status.OK and not _sum_up(frequencies, posting, stop, positions, place):
                code = status.BAD_VALUE
            if code != status.OK:
                return int(code | (term << 8))
            place += count
    return status.OK


@subroutine
def _decode_deltas(data: Any, at: Any, end: Any, count: Any, has_groups: Any, out: Any, place: Any) -> Any:
    """Decode `count` numbers, and write them from `place` on. Returns a status without an index."""
    rest = count
    while has_groups and rest >= GROUP:
        if at >= end:
            return status.TOO_SHORT
        width = np.int64(data[at])
        if width > 32:
            return status.BAD_WIDTH
        if end - at - 1 < width * LANES * 4:
            return status.TOO_SHORT
        unpack_lanes(data, at + 1, width, LANES, out, place)
        at += 1 + width * LANES * 4
        place += GROUP
        rest -= GROUP
    for i in range(place, place + rest):
        value, at = read_varint(data, at, end)
        if at < 0 or value > 0xFFFFFFFF:
            return status.TOO_SHORT
        out[i] = np.uint32(value)
    return status.OK if at == end else status.TRAILING


@subroutine
def _sum_up(frequencies: Any, posting: Any, stop: Any, positions: Any, place: Any) -> Any:
    """Turn each posting's deltas into positions, in place. Returns False if a position exceeds 32 bits."""
    for i in range(posting, stop):
        value = np.int64(0)
        for j in range(place, place + np.int64(frequencies[i])):
            value += np.int64(positions[j])
            if value > 0xFFFFFFFF:
                return False
            positions[j] = np.uint32(value)
        place += np.int64(frequencies[i])
    return True


@kernel
def encode_positions(
    bounds: Int64s,
    frequencies: UInt32s,
    positions: UInt32s,
    block_size: int,
    out: Bytes,
    terms: Int64s,
    starts: UInt32s,
    scratch: UInt32s,
) -> int:
    """Encode positions. Every 128 numbers of a block are packed as a group.

    Args:
        bounds: First posting of each term, and the end of the last term.
        frequencies: Number of positions of each posting.
        positions: (frequencies.sum(),), ascending for each posting.
        block_size: Number of postings of a block.
        out: Output. 5 bytes for each position, and one for each block, are enough.
        terms: Output: byte offset of each term, and the end of the last one.
        starts: Output: offset of each block from the start of its term.
        scratch: (128,), scratch space.

    Returns:
        Number of bytes written. -1 if `out` or `starts` is too small, -2 if a term's size exceeds 32 bits.
    """
    at, place, block = np.int64(0), np.int64(0), 0
    for term in range(len(bounds) - 1):
        terms[term] = at
        for posting in range(bounds[term], bounds[term + 1], block_size):
            if block >= len(starts):
                return -1
            if at - terms[term] > 0xFFFFFFFF:
                return -2
            starts[block] = np.uint32(at - terms[term])
            block += 1
            waiting = 0
            for i in range(posting, min(posting + block_size, bounds[term + 1])):
                previous = np.uint32(0)
                for _ in range(frequencies[i]):
                    scratch[waiting] = positions[place] - previous
                    previous = positions[place]
                    place += 1
                    waiting += 1
                    if waiting == GROUP:
                        if len(out) - at < 1 + GROUP * 4:
                            return -1
                        at = _encode_group(scratch, out, at)
                        waiting = 0
            if len(out) - at < 5 * waiting:
                return -1
            for i in range(waiting):
                at = write_varint(out, at, np.int64(scratch[i]))
    terms[len(bounds) - 1] = at
    return int(at)


@subroutine
def _encode_group(values: Any, out: Any, at: Any) -> Any:
    together = np.uint32(0)
    for i in range(GROUP):
        together |= values[i]
    width = bits_of(together)
    store_u8(out, at, np.uint8(width))
    pack_lanes(as_readonly(values), 0, width, LANES, out, at + 1)
    return at + 1 + width * LANES * 4


@kernel
def decode_old_positions(data: Bytes, offsets: Int64s, frequencies: UInt32s, positions: UInt32s) -> int:
    """Decode positions of format 1, which stores a separate value for each posting.

    Args:
        data: Bytes of all postings.
        offsets: (postings + 1,), byte offset of each posting, and the end of the last one.
        frequencies: Number of positions of each posting.
        positions: (frequencies.sum(),), output.

    Returns:
        A status with the index of a posting.
    """
    place = np.int64(0)
    for i in range(len(frequencies)):
        at, end, count = offsets[i], offsets[i + 1], np.int64(frequencies[i])
        if at < 0 or end < at or end > len(data):
            return status.BAD_OFFSETS | (i << 8)
        if end - at < 4 or np.int64(load_u32(data, at)) != count or count > len(positions) - place:
            return status.BAD_LENGTH | (i << 8)
        code = _decode_old(data, at + 4, end, count, positions, place)
        if code != status.OK:
            return int(code | (i << 8))
        for j in range(place + 1, place + count):
            if positions[j] < positions[j - 1]:
                return status.BAD_VALUE | (i << 8)
        place += count
    return status.OK


@subroutine
def _decode_old(data: Any, at: Any, end: Any, count: Any, out: Any, place: Any) -> Any:
    rest = count
    while rest >= GROUP:
        if end - at < 5:
            return status.TOO_SHORT
        value, width = np.uint32(load_u32(data, at)), np.int64(data[at + 4])
        if width > 32:
            return status.BAD_WIDTH
        if end - at - 5 < width * LANES * 4:
            return status.TOO_SHORT
        unpack_lanes(data, at + 5, width, LANES, out, place)
        at += 5 + width * LANES * 4
        for i in range(place, place + GROUP):
            value = np.uint32(value + out[i])
            out[i] = value
        place += GROUP
        rest -= GROUP
    if end - at != rest * 4:
        return status.BAD_LENGTH
    for i in range(rest):
        out[place + i] = load_u32(data, at + i * 4)
    return status.OK


@kernel
def encode_old_positions(
    frequencies: UInt32s, positions: UInt32s, out: Bytes, offsets: Int64s, scratch: UInt32s
) -> int:
    """Encode positions in format 1. A posting has its position count, groups of 128 positions, then the remainder.

    Args:
        frequencies: Number of positions of each posting.
        positions: (frequencies.sum(),), ascending for each posting.
        out: Output. 5 bytes for each position, and 4 for each posting, are enough.
        offsets: Output: byte offset of each posting, and the end of the last one.
        scratch: (128,), scratch space.

    Returns:
        Number of bytes written, or -1 if `out` or `offsets` is too small.
    """
    at, place, part = np.int64(0), np.int64(0), 0
    for i in range(len(frequencies)):
        rest = np.int64(frequencies[i])
        if len(out) - at < 4 + rest * 5 or len(offsets) - part < 2 + rest // GROUP:
            return -1
        offsets[part] = at
        part += 1
        store_u32(out, at, np.uint32(rest))
        at += 4
        while rest >= GROUP:
            offsets[part] = at
            part += 1
            store_u32(out, at, positions[place])
            scratch[0] = np.uint32(0)
            for j in range(1, GROUP):
                scratch[j] = positions[place + j] - positions[place + j - 1]
            at = _encode_group(scratch, out, at + 4)
            place += GROUP
            rest -= GROUP
        if rest > 0:
            offsets[part] = at
            part += 1
        for _ in range(rest):
            store_u32(out, at, positions[place])
            at += 4
            place += 1
    offsets[part] = at
    return int(at)
