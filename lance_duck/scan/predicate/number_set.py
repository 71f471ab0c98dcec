"""Sets of integers that kernels look up: an array of flags for dense integers, otherwise a hash table of flags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.scan.costs import FLAGS, FLAGS_FOR_EACH
from lance_duck.scan.predicate.kernels import Mask, and_hashed, and_lookup

_HASH_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_SLOTS_FOR_EACH: Final = 32
"""Minimum number of hash table slots per member. At most one in 32 numbers that are not members then passes."""
_LEAST_BITS: Final = 10
_MOST_BITS: Final = 28


@dataclass(frozen=True, eq=False)
class NumberSet:
    """A set of integers of one dtype, of at most 64 bits. `of` creates it.

    Attributes:
        low: The integer of the first flag.
        answers: Flags, 0 or 1: by distance from `low`, or by hash.
        shift: Shift of the hash. None if the flags are exact.
    """

    low: np.int64
    answers: NDArray[np.uint8]
    shift: np.uint64 | None

    @classmethod
    def of(cls, members: NDArray[Any]) -> NumberSet:
        """Return a set of integers, (n,), which may repeat."""
        signed = members.astype(np.int64)  # numbers above the maximum of int64 wrap around, as in the kernels
        if not len(signed):
            return cls(np.int64(0), np.zeros(0, np.uint8), None)
        low = signed.min()
        span = int(signed.max()) - int(low) + 1
        if span <= max(FLAGS, FLAGS_FOR_EACH * len(signed)):
            answers = np.zeros(span, np.uint8)
            answers[signed - low] = 1
            return cls(low, readonly(answers), None)
        bits = min(max(int(_SLOTS_FOR_EACH * len(signed)).bit_length(), _LEAST_BITS), _MOST_BITS)
        shift = np.uint64(64 - bits)
        answers = np.zeros(1 << bits, np.uint8)
        answers[(signed.view(np.uint64) * _HASH_FACTOR) >> shift] = 1
        return cls(np.int64(0), readonly(answers), shift)

    @property
    def is_exact(self) -> bool:
        """Whether exactly the members pass `narrow`."""
        return self.shift is None

    def narrow(self, numbers: NDArray[Any], mask: Mask) -> None:
        """Set the mask to 0 where a number is not a member. Unless `is_exact`, a few others also pass.

        Args:
            numbers: Integers of the members' dtype, (n,), readonly.
            mask: 0 or 1 for each number. Changed in place.
        """
        if self.shift is None:
            and_lookup(numbers, self.low, self.answers, mask)
        else:
            and_hashed(numbers, _HASH_FACTOR, self.shift, self.answers, mask)
