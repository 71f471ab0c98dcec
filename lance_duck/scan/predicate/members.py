"""Rows that have one of some integers: a compiled hash filter, and an exact comparison of the rows that pass it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.scan.predicate.kernels import Mask, and_hashed

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SPARE: Final = 16
"""Slots of the hash table for each member, at least: one in 16 other rows passes the hash filter."""
_LEAST_BITS: Final = 10
_MOST_BITS: Final = 24


def keep_members(numbers: NDArray[Any], members: NDArray[Any], mask: Mask) -> None:
    """Keep rows whose number is a member.

    Args:
        numbers: One for each row, integers of any width.
        members: Values of the same type.
        mask: 0 or 1 for each row; changed in place.
    """
    bits = min(max(int(_SPARE * len(members)).bit_length(), _LEAST_BITS), _MOST_BITS)
    shift = np.uint64(64 - bits)
    answers = np.zeros(1 << bits, np.uint8)
    # Signed integers wrap around, as in the kernel.
    answers[(members.astype(np.uint64) * _FACTOR) >> shift] = 1
    and_hashed(readonly(numbers), _FACTOR, shift, readonly(answers), mask)
    rows = np.flatnonzero(mask.view(np.bool_))
    are_members = pc.is_in(pa.array(numbers[rows]), value_set=pa.array(members))
    mask[rows] = are_members.to_numpy(zero_copy_only=False)
