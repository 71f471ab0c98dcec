"""Kernel that expands FSST codes.

Code c < n stands for the `lengths[c]` bytes of `symbols[c]`, code 255 for the byte behind it. Each code is expanded
with one 8-byte store, of which the next one overwrites what is too much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Bytes
from lance_duck.encoding.kernels import status
from lance_duck.encoding.kernels.jit import kernel
from lance_duck.encoding.kernels.memory import load_u8, load_u64, store_u8, store_u64
from lance_duck.encoding.kernels.variable import Offsets

ESCAPE = 255
SLACK = 8
_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F7F7F7F7F7F7F7F)


@kernel
def expand(
    codes: Bytes, ends: Offsets, symbols: NDArray[np.uint64], lengths: NDArray[np.int64], offsets: Offsets, out: Bytes
) -> int:
    """Expands values of codes.

    Args:
        codes: Value i is codes[ends[i] : ends[i + 1]]; the offsets have been checked.
        ends: Number of values + 1.
        symbols: uint64 (256,), bytes of each symbol, little-endian.
        lengths: int64 (256,), bytes of each symbol, 0 to 8; 0: the code has none.
        offsets: Number of values + 1, written: offsets into `out`.
        out: 8 bytes for each byte of codes and 8 more, written.

    Returns:
        A status.
    """
    place: Any = np.int64(0)
    offsets[0] = 0
    for i in range(len(ends) - 1):
        at = np.int64(ends[i])
        end = np.int64(ends[i + 1])
        bad = False
        while at < end:
            if at + 8 <= end:
                word = load_u64(codes, at)
                inverse = ~word
                if not (_HIGH & word & ~((inverse & _LOW) + _LOW)):
                    for _ in range(8):
                        code = np.int64(word & np.uint64(255))
                        store_u64(out, place, symbols[code])
                        length = lengths[code]
                        bad |= length == 0
                        place += length
                        word >>= np.uint64(8)
                    at += 8
                    continue
            code = np.int64(load_u8(codes, at))
            if code == ESCAPE:
                if at + 1 >= end:
                    return status.BAD_CODE | (i << 8)
                store_u8(out, place, load_u8(codes, at + 1))
                place += 1
                at += 2
            else:
                store_u64(out, place, symbols[code])
                length = lengths[code]
                bad |= length == 0
                place += length
                at += 1
        if bad:
            return status.BAD_CODE | (i << 8)
        offsets[i + 1] = place
    return status.OK


def expand_reference(
    codes: Bytes, ends: Offsets, symbols: NDArray[np.uint64], lengths: NDArray[np.int64], offsets: Offsets, out: Bytes
) -> int:
    """The same, code by code."""
    table = [int(s).to_bytes(8, "little")[:n] for s, n in zip(symbols.tolist(), lengths.tolist(), strict=True)]
    result = bytearray()
    offsets[0] = 0
    for i in range(len(ends) - 1):
        value = iter(codes[ends[i] : ends[i + 1]].tolist())
        for code in value:
            literal = next(value, None) if code == ESCAPE else None
            if (code == ESCAPE and literal is None) or (code != ESCAPE and not table[code]):
                return status.BAD_CODE | (i << 8)
            result += table[code] if literal is None else bytes([literal])
        offsets[i + 1] = len(result)
    out[: len(result)] = np.frombuffer(bytes(result), np.uint8)
    return status.OK
