"""XXH64 with seed 0, of many keys at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(p)
    for p in (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)
_STRIPE = 32


def xxh64(keys: Sequence[bytes]) -> Hashes:
    """Return the hash of each key."""
    lengths = np.fromiter(map(len, keys), np.int64, len(keys))
    found = np.empty(len(keys), np.uint64)
    for length in np.unique(lengths).tolist():
        mine = np.flatnonzero(lengths == length)
        joined = b"".join(keys[i] for i in mine.tolist())
        with np.errstate(over="ignore"):
            found[mine] = _of_one_length(np.frombuffer(joined, np.uint8).reshape(len(mine), length))
    return found


def _of_one_length(rows: NDArray[np.uint8]) -> Hashes:
    count, length = rows.shape
    stripes = length // _STRIPE
    at = stripes * _STRIPE
    result = _stripes(rows[:, :at]) if stripes else np.full(count, _P5)
    result = result + np.uint64(length)
    for _ in range((length - at) // 8):
        result = _rotated(result ^ _round(np.zeros(count, np.uint64), _words(rows, at, 8)), 27) * _P1 + _P4
        at += 8
    if length - at >= 4:
        result = _rotated(result ^ _words(rows, at, 4) * _P1, 23) * _P2 + _P3
        at += 4
    for i in range(at, length):
        result = _rotated(result ^ rows[:, i].astype(np.uint64) * _P5, 11) * _P1
    return _avalanched(result)


def _stripes(rows: NDArray[np.uint8]) -> Hashes:
    count, length = rows.shape
    zero = np.zeros(count, np.uint64)
    lanes = [zero + _P1 + _P2, zero + _P2, zero, zero - _P1]
    for at in range(0, length, _STRIPE):
        lanes = [_round(lane, _words(rows, at + 8 * i, 8)) for i, lane in enumerate(lanes)]
    result = zero
    for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True):
        result = result + _rotated(lane, bits)
    for lane in lanes:
        result = (result ^ _round(zero, lane)) * _P1 + _P4
    return result


def _round(lane: Hashes, words: Hashes) -> Hashes:
    return _rotated(lane + words * _P2, 31) * _P1


def _avalanched(values: Hashes) -> Hashes:
    values = (values ^ values >> np.uint64(33)) * _P2
    values = (values ^ values >> np.uint64(29)) * _P3
    return values ^ values >> np.uint64(32)


def _rotated(values: Hashes, bits: int) -> Hashes:
    return values << np.uint64(bits) | values >> np.uint64(64 - bits)


def _words(rows: NDArray[np.uint8], at: int, size: int) -> Hashes:
    words = np.ascontiguousarray(rows[:, at : at + size]).view(f"<u{size}")
    return words[:, 0].astype(np.uint64)
