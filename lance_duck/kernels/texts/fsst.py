"""Kernel that expands FSST codes.

A code c < n represents the `lengths[c]` bytes of `symbols[c]`. Code 255 escapes the byte after it. The codes of all
values form one stream. Eight codes are expanded at a time. Each is written with one 8-byte store, and the next store
overwrites surplus bytes. The kernel records the output offset of each code for a section of the stream, then looks up
the value offsets in these records. Values are short: a branch at the end of each value would cost more than its codes.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u8, load_u64, store_u8, store_u64, trailing_zeros
from lance_duck.kernels.texts.variable import Offsets

ESCAPE: Final = 255
NO_SYMBOL: Final = 16
SLACK: Final = 8
PIECE: Final = 1024
PLACES: Final = PIECE + 16
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)
_BYTE = np.uint64(0xFF)
_LENGTH: Final = 15
_NOWHERE = np.uint64(0xFFFFFFFFFFFFFFFF)


@subroutine
def _expand_piece(
    codes: Bytes,
    at: int,
    last: int,
    symbols: NDArray[np.uint64],
    lengths: Bytes,
    out: Bytes,
    place: Any,
    places: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Expand up to PIECE codes of codes[at:last], and a few more to complete an escape or a group of eight.

    Returns:
        (index of the next code, or -1 if the last code is an escape; next output offset; bitwise OR of all lengths).
    """
    base = at
    limit = min(base + PIECE, last)
    longest: Any = np.int64(0)
    while at < limit:
        word: Any = np.uint64(ESCAPE)
        step = 0
        if at + 8 <= last:
            word = load_u64(codes, at)
            step = trailing_zeros(_HIGH & word & ~((~word & _LOW) + _LOW)) >> 3
        elif load_u8(codes, at) != ESCAPE:
            word = np.uint64(load_u8(codes, at))
            step = 1
        if step == 8:
            for i in range(8):
                code = np.int64(word & _BYTE)
                store_u64(places, (at - base + i) * 8, np.uint64(place))
                store_u64(out, place, load_u64(symbols, code * 8))
                length = np.int64(load_u8(lengths, code))
                longest |= length
                place += length & _LENGTH
                word >>= np.uint64(8)
            at += 8
            continue
        for _ in range(step):
            code = np.int64(word & _BYTE)
            store_u64(places, (at - base) * 8, np.uint64(place))
            store_u64(out, place, load_u64(symbols, code * 8))
            length = np.int64(load_u8(lengths, code))
            longest |= length
            place += length & _LENGTH
            word >>= np.uint64(8)
            at += 1
        if word & _BYTE == ESCAPE:
            if at + 1 >= last:
                return -1, place, longest
            store_u64(places, (at - base) * 8, np.uint64(place))
            store_u64(places, (at + 1 - base) * 8, _NOWHERE)
            store_u8(out, place, load_u8(codes, at + 1))
            place += 1
            at += 2
    store_u64(places, (at - base) * 8, np.uint64(place))
    return at, place, longest


@kernel
def expand(
    codes: Bytes,
    ends: Offsets,
    symbols: NDArray[np.uint64],
    lengths: Bytes,
    offsets: Offsets,
    out: Bytes,
    places: NDArray[np.int64],
) -> int:
    """Expand the codes of values.

    Args:
        codes: Value i is codes[ends[i] : ends[i + 1]]. The offsets are already checked.
        ends: (values + 1,).
        symbols: uint64 (256,), bytes of each symbol, little-endian.
        lengths: uint8 (256,), size of each symbol in bytes, 1 to 8, or NO_SYMBOL for unused codes.
        offsets: (values + 1,), output: offsets into `out`.
        out: Output: 8 bytes for each byte of codes, and SLACK more.
        places: int64 (PLACES,), scratch space.

    Returns:
        A status with the index of a value at or before the invalid value.
    """
    count = len(ends) - 1
    value = 0
    at: Any = np.int64(ends[0])
    last: Any = np.int64(ends[count])
    place: Any = np.int64(0)
    offsets[0] = 0
    while value < count:
        base = at
        at, place, longest = _expand_piece(codes, at, last, symbols, lengths, out, place, places)
        if at < 0 or longest >= NO_SYMBOL:
            return status.BAD_CODE | (value << 8)
        first = value
        lowest = np.int64(0)
        while value < count and ends[value + 1] <= at:
            end = places[ends[value + 1] - base]
            lowest = min(lowest, end)
            offsets[value + 1] = end
            value += 1
        if lowest < 0:
            return status.BAD_CODE | (first << 8)
    return status.OK


def expand_reference(
    codes: Bytes,
    ends: Offsets,
    symbols: NDArray[np.uint64],
    lengths: Bytes,
    offsets: Offsets,
    out: Bytes,
    places: NDArray[np.int64],
) -> int:
    """Reference implementation, code by code."""
    table = [int(s).to_bytes(8, "little")[:n] for s, n in zip(symbols.tolist(), lengths.tolist(), strict=True)]
    result = bytearray()
    offsets[0] = 0
    for i in range(len(ends) - 1):
        value = iter(codes[ends[i] : ends[i + 1]].tolist())
        for code in value:
            literal = next(value, None) if code == ESCAPE else None
            if (code == ESCAPE and literal is None) or (code != ESCAPE and lengths[code] == NO_SYMBOL):
                return status.BAD_CODE | (i << 8)
            result += table[code] if literal is None else bytes([literal])
        offsets[i + 1] = len(result)
    out[: len(result)] = np.frombuffer(bytes(result), np.uint8)
    return status.OK
