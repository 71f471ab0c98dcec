"""Kernel that collects statistics of numbers, by which an encoding is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.numbers.bitpacking import BLOCK


@kernel
def collect_number_stats(words: NDArray[Any], bits_out: NDArray[np.uint64]) -> int:
    """Count runs, and find the bits that blocks of 1024 values use.

    Args:
        words: Unsigned numbers.
        bits_out: One for each block, written: all of its values, or-ed.

    Returns:
        Number of runs of equal values.
    """
    runs = 0
    count = len(words)
    for block in range(len(bits_out)):
        first = block * BLOCK
        last = min(first + BLOCK, count)
        bits = words[first]
        changes: Any = 1 if first == 0 else np.int64(words[first] != words[first - 1])
        for i in range(first + 1, last):
            bits |= words[i]
            changes += np.int64(words[i] != words[i - 1])
        bits_out[block] = bits
        runs += changes
    return runs


def look_reference(words: NDArray[Any], bits_out: NDArray[np.uint64]) -> int:
    """Compute the plain reference, in Python."""
    for block in range(len(bits_out)):
        bits_out[block] = np.bitwise_or.reduce(words[block * BLOCK : (block + 1) * BLOCK])
    return min(len(words), 1) + int(np.count_nonzero(words[1:] != words[:-1]))
