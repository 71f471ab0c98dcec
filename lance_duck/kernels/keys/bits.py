"""Kernels that set bits, for sets of numbers that come in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel

UInt64s = NDArray[np.uint64]


@kernel
def bounds_of_names(names: UInt64s, bounds: UInt64s) -> None:
    """Find the least and the greatest upper half of names, and the greatest lower half.

    Args:
        names: 64-bit names, at least one.
        bounds: uint64 (3,), written.
    """
    low = high = names[0] >> np.uint64(32)
    within = np.uint64(0)
    for i in range(len(names)):
        key = names[i] >> np.uint64(32)
        low = min(low, key)
        high = max(high, key)
        within = max(within, names[i] & np.uint64(0xFFFFFFFF))
    bounds[0] = low
    bounds[1] = high
    bounds[2] = within


def bounds_of_names_reference(names: UInt64s, bounds: UInt64s) -> None:
    """Compute the plain reference, in Python."""
    keys = names >> np.uint64(32)
    bounds[:] = keys.min(), keys.max(), (names & np.uint64(0xFFFFFFFF)).max()


@kernel
def set_bits(names: UInt64s, least: int, words: NDArray[np.uint64]) -> None:
    """Set a bit for each name.

    Args:
        names: 64-bit names, within the bounds that the shape of `words` sets.
        least: Upper half that the first row of `words` stands for.
        words: uint64 (upper halves, lower halves / 64), written: a bit for each lower half, lowest first.
    """
    first = np.uint64(least)
    for i in range(len(names)):
        row = np.int64((names[i] >> np.uint64(32)) - first)
        within = names[i] & np.uint64(0xFFFFFFFF)
        words[row, np.int64(within >> np.uint64(6))] |= np.uint64(1) << (within & np.uint64(63))


def set_bits_reference(names: UInt64s, least: int, words: NDArray[np.uint64]) -> None:
    """Compute the plain reference, in Python."""
    for name in names.tolist():
        row, within = (name >> 32) - least, name & 0xFFFFFFFF
        words[row, within >> 6] |= np.uint64(1 << (within & 63))
