"""Kernel of XXH64 with seed 0, and a subroutine for any seed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u8, load_u32, load_u64

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_MINUS_P1 = np.uint64(2**64 - 0x9E3779B185EBCA87)
_P1_P2 = np.uint64((0x9E3779B185EBCA87 + 0xC2B2AE3D27D4EB4F) % 2**64)
_NO_SEED = np.uint64(0)
_STRIPE = 32


@kernel
def xxh64(data: Bytes, offsets: NDArray[np.integer], hashes: NDArray[np.uint64]) -> bool:
    """Hash each value. Returns False if the offsets do not ascend within `data`.

    Args:
        data: uint8, bytes of the values.
        offsets: (n + 1,), value offsets.
        hashes: uint64 (n,), output.
    """
    start = np.int64(offsets[0])
    if start < 0:
        return False
    for i in range(len(offsets) - 1):
        stop = np.int64(offsets[i + 1])
        if stop < start or stop > len(data):
            return False
        hashes[i] = hash_of(data, start, stop, _NO_SEED)
        start = stop
    return True


@subroutine
def hash_of(data: Bytes, start: Any, stop: Any, seed: Any) -> Any:
    """Return the XXH64 of `data[start:stop]`. The caller checks the bounds."""
    at = np.int64(start)
    result: Any = seed + _P5
    if stop - at >= _STRIPE:
        a, b, c, d = seed + _P1_P2, seed + _P2, seed, seed + _MINUS_P1
        while stop - at >= _STRIPE:
            a = _round(a, load_u64(data, at))
            b = _round(b, load_u64(data, at + 8))
            c = _round(c, load_u64(data, at + 16))
            d = _round(d, load_u64(data, at + 24))
            at += _STRIPE
        result = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        result = _merged(_merged(_merged(_merged(result, a), b), c), d)
    result += np.uint64(stop - start)
    while stop - at >= 8:
        result = _rotated(result ^ _round(np.uint64(0), load_u64(data, at)), 27) * _P1 + _P4
        at += 8
    if stop - at >= 4:
        result = _rotated(result ^ np.uint64(load_u32(data, at)) * _P1, 23) * _P2 + _P3
        at += 4
    while at < stop:
        result = _rotated(result ^ np.uint64(load_u8(data, at)) * _P5, 11) * _P1
        at += 1
    result = (result ^ result >> np.uint64(33)) * _P2
    result = (result ^ result >> np.uint64(29)) * _P3
    return result ^ result >> np.uint64(32)


@subroutine
def _round(lane: Any, word: Any) -> Any:
    return _rotated(lane + word * _P2, 31) * _P1


@subroutine
def _merged(result: Any, lane: Any) -> Any:
    return (result ^ _round(np.uint64(0), lane)) * _P1 + _P4


@subroutine
def _rotated(value: Any, bits: int) -> Any:
    return value << np.uint64(bits) | value >> np.uint64(64 - bits)


def xxh64_reference(data: bytes, offsets: list[int]) -> list[int]:
    """Reference implementation in plain Python."""
    return [_plain_hash(data[start:stop]) for start, stop in pairwise(offsets)]


def _plain_hash(value: bytes) -> int:
    p1, p2, p3, p4, p5 = (int(p) for p in (_P1, _P2, _P3, _P4, _P5))
    top = 2**64 - 1

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> 64 - bits) & top

    def turned(lane: int, word: int) -> int:
        return rotated(lane + word * p2 & top, 31) * p1 & top

    words = [int.from_bytes(value[i : i + 8], "little") for i in range(0, len(value) - 7, 8)]
    whole = len(value) // _STRIPE * 4
    result = p5
    if whole:
        lanes = [p1 + p2 & top, p2, 0, -p1 & top]
        for i in range(whole):
            lanes[i % 4] = turned(lanes[i % 4], words[i])
        result = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & top
        for lane in lanes:
            result = (result ^ turned(0, lane)) * p1 + p4 & top
    result = result + len(value) & top
    for word in words[whole:]:
        result = rotated(result ^ turned(0, word), 27) * p1 + p4 & top
    rest = value[8 * len(words) :]
    if len(rest) >= 4:
        result = rotated(result ^ int.from_bytes(rest[:4], "little") * p1 & top, 23) * p2 + p3 & top
        rest = rest[4:]
    for byte in rest:
        result = rotated(result ^ byte * p5 & top, 11) * p1 & top
    result = (result ^ result >> 33) * p2 & top
    result = (result ^ result >> 29) * p3 & top
    return result ^ result >> 32
