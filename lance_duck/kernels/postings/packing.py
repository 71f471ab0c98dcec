"""Subroutines for posting blocks: lane-packed numbers, and varints of 7 bits for each byte.

A group is 32 rows of 4 or 8 values, one for each lane. The values of a lane are packed one after the other, lowest bit
first, into `width` words of 32 bits. Word k of lane l lies at byte (k * lanes + l) * 4.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.memory import load_u32, store_u8, store_u32
from lance_duck.kernels.postings.lanes import ROWS

VARINT_BYTES: Final = 5
"""Maximum size of a varint, in bytes. Varints have up to 35 bits."""


@subroutine
def pack_lanes(values: Any, place: Any, width: Any, lanes: Any, out: Any, target: Any) -> None:
    """Pack a group of `32 * lanes` values, each below `2 ** width`, into `width * lanes * 4` bytes of `out`."""
    for i in range(width * lanes):
        store_u32(out, target + i * 4, np.uint32(0))
    if width == 0:
        return
    for row in range(ROWS):
        bit = row * width
        at = target + (bit >> 5) * lanes * 4
        shift = np.uint32(bit & 31)
        is_split = (bit & 31) + width > 32
        for lane in range(lanes):
            value = np.uint32(values[place + row * lanes + lane])
            here = at + lane * 4
            store_u32(out, here, np.uint32(load_u32(out, here) | np.uint32(value << shift)))
            if is_split:
                store_u32(out, here + lanes * 4, np.uint32(value >> (np.uint32(32) - shift)))


@subroutine
def bits_of(value: Any) -> Any:
    """Return a number's bit width, 0 for 0."""
    rest = np.uint64(value)
    bits = np.int64(0)
    while rest:
        rest >>= np.uint64(1)
        bits += 1
    return bits


@subroutine
def read_varint(data: Any, at: Any, end: Any) -> Any:
    """Read a varint of up to 35 bits: 7 bits in each byte, lowest first. A set high bit means that more bytes follow.

    Returns:
        (number, end). The end is -1 if the varint is too long or does not end before `end`.
    """
    value, shift, place = np.int64(0), np.int64(0), np.int64(at)
    while place < end and shift < VARINT_BYTES * 7:
        byte = np.int64(data[place])
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7
    return value, np.int64(-1)


@subroutine
def write_varint(out: Any, at: Any, value: Any) -> Any:
    """Write a number of up to 35 bits as a varint. Returns its end."""
    rest, place = np.int64(value), np.int64(at)
    while rest > 127:
        store_u8(out, place, np.uint8((rest & 127) | 128))
        rest >>= 7
        place += 1
    store_u8(out, place, np.uint8(rest))
    return place + 1


@subroutine
def varint_size(value: Any) -> Any:
    """Return the size of a number's varint, in bytes."""
    rest, size = np.int64(value) >> 7, np.int64(1)
    while rest:
        rest >>= 7
        size += 1
    return size
