"""Kernel that decompresses LZ4 blocks.

A block is a series of sequences. A sequence consists of a token (4 bits for the literal length, 4 bits for the match
length), extra literal length, the literals, a u16 distance, and extra match length. A length of 15 continues in the
next bytes, up to the first byte below 255. A match is 4 bytes longer than its stored length. The last sequence ends
after its literals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, copy, load_u8, load_u16, load_u64, store_u8, store_u64

SLACK = 8
_MORE = 15
_MIN_MATCH = 4


@subroutine
def _copy_match(out: Bytes, place: int, distance: int, length: int) -> None:
    """Append `length` bytes of earlier output at `place`. May write up to 7 bytes more."""
    if distance >= 8:
        for j in range(0, length, 8):
            store_u64(out, place + j, load_u64(out, place + j - distance))
    else:
        for j in range(length):
            store_u8(out, place + j, load_u8(out, place + j - distance))


@subroutine
def _length(data: Bytes, at: int, end: int, length: int) -> tuple[int, int]:
    """Return a length that may continue at `at`, and the next offset, or -1 if the input ends."""
    if length != _MORE:
        return length, at
    while at < end:
        byte: Any = np.int64(load_u8(data, at))
        at += 1
        length += byte
        if byte != 255:
            return length, at
    return length, -1


@subroutine
def decompress_block(data: Bytes, start: int, size: int, out: Bytes, place: int, room: int) -> int:
    """Decompress one block into out[place:].

    The block must yield `room` bytes. Up to SLACK more bytes may be overwritten.

    Returns:
        A status without an index.
    """
    at = start
    end = start + size
    stop = place + room
    begin = place
    while at < end:
        token: Any = np.int64(load_u8(data, at))
        literals, at = _length(data, at + 1, end, token >> 4)
        if at < 0 or literals > end - at:
            return status.TOO_SHORT
        if literals > stop - place:
            return status.BAD_LENGTH
        if literals <= 16 and at + 16 <= len(data) and place + 16 <= len(out):
            store_u64(out, place, load_u64(data, at))
            store_u64(out, place + 8, load_u64(data, at + 8))
        else:
            copy(out, place, data, at, literals)
        at += literals
        place += literals
        if at == end:
            break
        if end - at < 2:
            return status.TOO_SHORT
        distance: Any = np.int64(load_u16(data, at))
        length, at = _length(data, at + 2, end, token & 15)
        if at < 0:
            return status.TOO_SHORT
        length += _MIN_MATCH
        if distance == 0 or distance > place - begin:
            return status.BAD_MATCH
        if length > stop - place:
            return status.BAD_LENGTH
        _copy_match(out, place, distance, length)
        place += length
    return status.OK if place == stop else status.BAD_LENGTH


@kernel
def decompress_blocks(
    data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], ends: NDArray[np.int64], out: Bytes
) -> int:
    """Decompress blocks and concatenate the results.

    Args:
        data: Holds the blocks. Their extents are already checked.
        starts: Byte offset of each block.
        sizes: Size of each block, in bytes.
        ends: End of each block's bytes in `out`; ascending.
        out: ends[-1] + SLACK bytes, output.

    Returns:
        A status.
    """
    place: Any = np.int64(0)
    for i in range(len(starts)):
        result = decompress_block(data, starts[i], sizes[i], out, place, ends[i] - place)
        if result != status.OK:
            return result | (i << 8)
        place = ends[i]
    return status.OK


def decompress_blocks_reference(
    data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], ends: NDArray[np.int64], out: Bytes
) -> int:
    """Reference implementation, byte by byte."""
    place = 0
    for i, (start, size, end) in enumerate(zip(starts.tolist(), sizes.tolist(), ends.tolist(), strict=True)):
        result = _decompress_reference(data[start : start + size].tolist(), end - place)
        if isinstance(result, int):
            return result | (i << 8)
        out[place:end] = result
        place = end
    return status.OK


def _decompress_reference(block: list[int], room: int) -> list[int] | int:
    out: list[int] = []
    rest = iter(block)

    def length(first: int) -> int:
        byte = 255 if first == _MORE else 0
        while byte == 255:
            byte = next(rest)
            first += byte
        return first

    try:
        for token in rest:
            literals = length(token >> 4)
            literal_bytes = [byte for _, byte in zip(range(literals), rest, strict=False)]
            if len(literal_bytes) < literals:
                return status.TOO_SHORT
            out += literal_bytes
            if len(out) > room:
                return status.BAD_LENGTH
            low = next(rest, None)
            if low is None:
                break
            distance = low | next(rest) << 8
            match = length(token & 15) + _MIN_MATCH
            if not 0 < distance <= len(out):
                return status.BAD_MATCH
            if len(out) + match > room:
                return status.BAD_LENGTH
            for _ in range(match):
                out.append(out[-distance])
    except StopIteration:
        return status.TOO_SHORT
    return out if len(out) == room else status.BAD_LENGTH
