"""Kernels for flat encoding: copy whole bytes, expand bits to bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, load_u8, load_u64, store_u8, store_u64

SPREAD = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").view(np.uint64).ravel()
"""The eight bits of each byte value, expanded to eight bytes, lowest bit first."""


@kernel
def join_bytes(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], out: Bytes) -> None:
    """Copy data[starts[i] : starts[i] + sizes[i]] for each i, and concatenate the ranges in `out`.

    The caller has checked that all ranges lie within `data` and that `out` has sizes.sum() bytes.
    """
    place = 0
    for i in range(len(starts)):
        copy(out, place, data, starts[i], sizes[i])
        place += sizes[i]


def join_bytes_reference(data: Bytes, starts: NDArray[np.int64], sizes: NDArray[np.int64], out: Bytes) -> None:
    """Reference implementation in plain Python."""
    parts = [data[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]
    out[:] = np.concatenate(parts) if parts else np.zeros(0, np.uint8)


@kernel
def join_low_words(
    data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], words: int, out: NDArray[np.int64]
) -> bool:
    """Write the lowest 64-bit word of each number.

    The caller has checked that `data` contains counts[i] numbers at starts[i], and that `out` has room for all numbers.

    Args:
        data: Holds the numbers.
        starts: Byte offset of each chunk's first number.
        counts: Number of numbers in each chunk.
        words: Number of words in a number.
        out: int64, output.

    Returns:
        Whether every number fits into its lowest word.
    """
    place = 0
    lost = np.uint64(0)
    for i in range(len(starts)):
        at = starts[i]
        for _ in range(counts[i]):
            low: Any = np.int64(load_u64(data, at))
            sign = np.uint64(low >> 63)
            for j in range(1, words):
                lost |= load_u64(data, at + 8 * j) ^ sign
            out[place] = low
            place += 1
            at += 8 * words
    return bool(lost == 0)


def join_low_words_reference(
    data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], words: int, out: NDArray[np.int64]
) -> bool:
    """Reference implementation, number by number."""
    size = 8 * words
    places = [
        start + i * size for start, count in zip(starts.tolist(), counts.tolist(), strict=True) for i in range(count)
    ]
    numbers = [int.from_bytes(data[at : at + size].tobytes(), "little", signed=True) for at in places]
    out[:] = [(number + 2**63) % 2**64 - 2**63 for number in numbers]
    return all(-(2**63) <= number < 2**63 for number in numbers)


@kernel
def gather_low_words(data: Bytes, starts: NDArray[np.int64], words: int, out: NDArray[np.int64]) -> bool:
    """Write the lowest 64-bit word of the number at each start.

    The caller has checked that `data` contains the numbers.

    Args:
        data: Holds the numbers.
        starts: Byte offset of each number.
        words: Number of words in a number.
        out: int64 (numbers,), output.

    Returns:
        Whether every number fits into its lowest word.
    """
    lost = np.uint64(0)
    for i in range(len(starts)):
        low: Any = np.int64(load_u64(data, starts[i]))
        sign = np.uint64(low >> 63)
        for j in range(1, words):
            lost |= load_u64(data, starts[i] + 8 * j) ^ sign
        out[i] = low
    return bool(lost == 0)


def gather_low_words_reference(data: Bytes, starts: NDArray[np.int64], words: int, out: NDArray[np.int64]) -> bool:
    """Reference implementation, number by number."""
    return join_low_words_reference(data, starts, np.ones(len(starts), np.int64), words, out)


@kernel
def spread_bits(data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], out: Bytes) -> None:
    """Expand counts[i] bits at starts[i] to bytes of 0 or 1, lowest bit of a byte first.

    The caller has checked that the bits lie within `data` and that `out` has counts.sum() bytes.
    """
    place = 0
    for i in range(len(starts)):
        source = starts[i]
        end = place + counts[i]
        while place + 8 <= end:
            store_u64(out, place, SPREAD[load_u8(data, source)])
            source += 1
            place += 8
        bit = 0
        while place < end:
            store_u8(out, place, np.uint8((load_u8(data, source) >> np.uint8(bit)) & np.uint8(1)))
            place += 1
            bit += 1


def spread_bits_reference(data: Bytes, starts: NDArray[np.int64], counts: NDArray[np.int64], out: Bytes) -> None:
    """Reference implementation in plain Python."""
    place = 0
    for start, count in zip(starts.tolist(), counts.tolist(), strict=True):
        packed = data[start : start + (count + 7) // 8]
        out[place : place + count] = np.unpackbits(packed, count=count, bitorder="little")
        place += count
