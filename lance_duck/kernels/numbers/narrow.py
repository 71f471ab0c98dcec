"""Kernels that narrow wide integers to their low words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel


@kernel
def low_words(words: NDArray[np.int64], stride: int, out: NDArray[Any], lost: NDArray[np.uint8]) -> bool:
    """Write the low words of each number of `stride` little-endian 64-bit words.

    Args:
        words: The numbers, concatenated.
        stride: Number of words in a number, at least the number of words that `out` has for it.
        out: int32 or int64 (numbers,), or int64 (numbers * low words,); output.
        lost: uint8 (numbers,), output: 1 for each number that does not fit.

    Returns:
        Whether any number does not fit.
    """
    count = len(lost)
    low_count = max(len(out) // max(count, 1), 1)
    any_lost = np.uint8(0)
    if low_count == 1:
        for i in range(count):
            low = words[i * stride]
            out[i] = low
            sign = np.int64(out[i]) >> 63
            is_lost = np.uint8(np.int64(out[i]) != low)
            for j in range(1, stride):
                is_lost |= np.uint8(words[i * stride + j] != sign)
            lost[i] = is_lost
            any_lost |= is_lost
        return bool(any_lost)
    for i in range(count):
        for j in range(low_count):
            out[i * low_count + j] = words[i * stride + j]
        sign = words[i * stride + low_count - 1] >> 63
        is_lost = np.uint8(0)
        for j in range(low_count, stride):
            is_lost |= np.uint8(words[i * stride + j] != sign)
        lost[i] = is_lost
        any_lost |= is_lost
    return bool(any_lost)


def low_words_reference(words: NDArray[np.int64], stride: int, out: NDArray[Any], lost: NDArray[np.uint8]) -> bool:
    """Reference implementation, number by number."""
    size = out.nbytes // max(len(lost), 1)
    for i in range(len(lost)):
        raw = words[i * stride : (i + 1) * stride].tobytes()
        out.view(np.uint8)[i * size : (i + 1) * size] = np.frombuffer(raw[:size], np.uint8)
        lost[i] = int.from_bytes(raw, "little", signed=True) != int.from_bytes(raw[:size], "little", signed=True)
    return bool(lost.any())
