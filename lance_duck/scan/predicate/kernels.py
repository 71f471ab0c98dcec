"""Compiled passes over one column. They set mask[i] to 0 if value i does not pass.

Each kernel modifies a uint8 mask (0 or 1) in place. `scan.predicate.evaluate` is the reference implementation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel

Mask = NDArray[np.uint8]

LESS, LESS_EQUAL, EQUAL, NOT_EQUAL, GREATER_EQUAL, GREATER = range(6)


@kernel
def and_range(values: NDArray[Any], low: Any, high: Any, mask: Mask) -> None:
    """Keep values from `low` to `high`, inclusive."""
    for i in range(len(values)):
        mask[i] &= np.uint8((values[i] >= low) & (values[i] <= high))


@kernel
def and_not_equal(values: NDArray[Any], constant: Any, mask: Mask) -> None:
    """Keep values other than the constant."""
    for i in range(len(values)):
        mask[i] &= np.uint8(values[i] != constant)


@kernel
def and_float(values: NDArray[Any], op: int, constant: Any, mask: Mask) -> None:
    """Keep values for which the comparison `op` with a number is true. NaN is greater than every number."""
    n = len(values)
    if op == LESS:
        for i in range(n):
            mask[i] &= np.uint8(values[i] < constant)
    elif op == LESS_EQUAL:
        for i in range(n):
            mask[i] &= np.uint8(values[i] <= constant)
    elif op == EQUAL:
        for i in range(n):
            mask[i] &= np.uint8(values[i] == constant)
    elif op == NOT_EQUAL:
        for i in range(n):
            mask[i] &= np.uint8(values[i] != constant)
    elif op == GREATER_EQUAL:
        for i in range(n):
            mask[i] &= np.uint8(not (values[i] < constant))
    else:
        for i in range(n):
            mask[i] &= np.uint8(not (values[i] <= constant))


@kernel
def and_string(
    offsets: NDArray[Any], data: NDArray[np.uint8], text: NDArray[np.uint8], equal: bool, mask: Mask
) -> None:
    """Keep values whose bytes equal a string, or differ from it if not `equal`. Offsets must be in range."""
    length = len(text)
    for i in range(len(mask)):
        start = offsets[i]
        same = offsets[i + 1] - start == length
        if same:
            for j in range(length):
                if data[start + j] != text[j]:
                    same = False
                    break
        mask[i] &= np.uint8(same == equal)


@kernel
def and_lookup(indices: NDArray[Any], low: np.int64, answers: NDArray[np.uint8], mask: Mask) -> None:
    """Keep rows whose flag answers[index - low] is set. Rows with an index outside the flags do not pass."""
    count = len(answers)
    for i in range(len(indices)):
        place = np.int64(indices[i]) - low
        if 0 <= place < count:
            mask[i] &= answers[place]
        else:
            mask[i] = 0


@kernel
def and_valid(bitmap: NDArray[np.uint8], first: int, mask: Mask) -> None:
    """Keep row i if bit first + i is set in the validity bitmap."""
    for i in range(len(mask)):
        bit = first + i
        mask[i] &= (bitmap[bit >> 3] >> (bit & 7)) & 1


@kernel
def hash_texts(offsets: NDArray[Any], data: NDArray[np.uint8], hashes: NDArray[np.uint64]) -> None:
    """Hash each string from its length and its last eight bytes. The hash is 0 if an offset is outside the data.

    Args:
        offsets: Offsets of n strings in `data`, (n + 1,).
        data: Bytes of the strings.
        hashes: Output, (n,).
    """
    for i in range(len(hashes)):
        start, stop = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if start < 0 or stop < start or stop > len(data):
            hashes[i] = 0
            continue
        hash_ = np.uint64(stop - start)
        for j in range(max(start, stop - 8), stop):
            hash_ = (hash_ << np.uint64(8)) ^ (hash_ >> np.uint64(56)) ^ np.uint64(data[j])
        hashes[i] = hash_


@kernel
def and_hashed(numbers: NDArray[Any], factor: np.uint64, shift: np.uint64, answers: Mask, mask: Mask) -> None:
    """Keep rows for which answers[(number * factor mod 2^64) >> shift] is set. Numbers are integers."""
    for i in range(len(mask)):
        mask[i] &= answers[(np.uint64(numbers[i]) * factor) >> shift]
