"""RaBitQ codes: the layout of their columns in a file, and conversion to and from rows.

Each number of a rotated residual has a sign bit, which is 1 for zero and positive numbers. With more than one bit per
number, it also has e further bits for its magnitude.

    _rabit_codes         fixed_size_list<uint8, dim / 8>: the signs of a partition. Byte i of a row has the signs of
                         numbers 8 i …, least significant bit first. Rows are stored in blocks of 32. A block has
                         dim / 8 groups of 32 bytes. Group i stores byte i of each row of the block, split into two
                         halves of 4 bits. The first 16 bytes store the lower halves: byte j has the half of row P[j]
                         in its lower 4 bits, and the half of row P[j] + 16 in its upper 4 bits, with P = 0 8 1 9 2 10
                         … 7 15. The next 16 bytes store the upper halves in the same way. The rows after the last full
                         block are stored as byte 0 of all these rows, then byte 1, …
    __blocked_ex_codes   fixed_size_list<uint8, 8 e * ceil(dim / 64)>: the further bits. 64 numbers take 8 e bytes, in
                         an order that depends on e: see `_place`. The last 64 numbers are padded with zeros
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

_BLOCK: Final = 32
_ROWS: Final = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])
_NUMBERS: Final = 64


def signs_of(column: Bytes) -> Bytes:
    """Return the signs of the rows of a partition, (n, dim / 8), from its column."""
    count, width = column.shape
    raw = column.reshape(-1)
    whole = count // _BLOCK * _BLOCK
    result = np.empty((count, width), np.uint8)
    blocks = raw[: whole * width].reshape(-1, width, 2, 16)
    low, high = blocks[:, :, 0], blocks[:, :, 1]
    rows = result[:whole].reshape(-1, _BLOCK, width)
    rows[:, _ROWS] = ((low & 15) | (high & 15) << 4).transpose(0, 2, 1)
    rows[:, _ROWS + 16] = (low >> 4 | (high & 0xF0)).transpose(0, 2, 1)
    result[whole:] = raw[whole * width :].reshape(width, -1).T
    return result


def packed_signs(signs: Bytes) -> Bytes:
    """Return the file column of a partition's signs: uint8 (n, dim / 8)."""
    count, width = signs.shape
    whole = count // _BLOCK * _BLOCK
    rows = signs[:whole].reshape(-1, _BLOCK, width).transpose(0, 2, 1)
    first, second = rows[:, :, _ROWS], rows[:, :, _ROWS + 16]
    blocks = np.stack([(first & 15) | (second & 15) << 4, first >> 4 | (second & 0xF0)], axis=2)
    return np.concatenate([blocks.reshape(-1), signs[whole:].T.reshape(-1)]).reshape(count, width)


def blocked_width(dim: int, bits: int) -> int:
    """Return the file width of a row's further bits, in bytes."""
    return -(-dim // _NUMBERS) * 8 * bits


def extra_of(column: Bytes, dim: int, bits: int) -> Bytes:
    """Return the further bits of each row, (n, dim * bits / 8): number by number, least significant bit first."""
    every = np.unpackbits(column, axis=1, bitorder="little")
    return np.packbits(every[:, _places(dim, bits)], axis=1, bitorder="little")


def blocked_extra(extra: Bytes, dim: int, bits: int) -> Bytes:
    """Return the file column of the further bits, (n, `blocked_width`)."""
    every = np.zeros((len(extra), 8 * blocked_width(dim, bits)), np.uint8)
    every[:, _places(dim, bits)] = np.unpackbits(extra, axis=1, bitorder="little")
    return np.packbits(every, axis=1, bitorder="little")


@lru_cache(64)
def _places(dim: int, bits: int) -> NDArray[np.int64]:
    """Return the position of each bit within a row of the file: int64 (dim * bits,), ordered by number and bit."""
    inside = np.array([[_place(bits, number, bit) for bit in range(bits)] for number in range(_NUMBERS)])
    numbers = np.arange(dim)
    places = inside[numbers % _NUMBERS] + (numbers // _NUMBERS * _NUMBERS * bits)[:, None]
    flat: NDArray[np.int64] = places.reshape(-1)
    flat.flags.writeable = False
    return flat


def _place(bits: int, number: int, bit: int) -> int:
    """Return the position of bit `bit` in number `number` among the bits of 64 numbers with `bits` bits each."""
    quarter, of_quarter = divmod(number, 16)
    top = 8 * (of_quarter % 8) + 2 * quarter + of_quarter // 8
    if bits == 1:
        return number
    if bits in (2, 3):
        return 8 * of_quarter + 2 * quarter + bit if bit < 2 else 128 + top
    if bits == 4:
        return 8 * (8 * quarter + of_quarter % 8) + 4 * (of_quarter // 8) + bit
    if bits == 5:
        return 8 * (16 * (quarter // 2) + of_quarter) + 4 * (quarter % 2) + bit if bit < 4 else 256 + top
    if bits in (6, 7):
        if bit == 6:
            return 384 + top
        if quarter < 3:
            return 8 * (16 * quarter + of_quarter) + bit
        return 8 * (16 * (bit // 2) + of_quarter) + 6 + bit % 2
    return 8 * number + bit
