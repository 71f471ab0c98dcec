"""The interface of array encodings of 2.0 pages, and the values that they give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lance_duck.encoding.block import Block
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request

MAX_COUNT = 2**31 - 1
"""Most values that one read of a page may ask for."""


@dataclass(frozen=True, slots=True)
class PageValues:
    """Values of a page.

    Attributes:
        block: The value slots, or None when all values are null.
        validity: uint8, a byte (0 or 1) for each value; None when no value is null, or the block is None.
        count: Number of values.
    """

    block: Block | None
    validity: Bytes | None
    count: int


class EncodedArray(Protocol):
    """A node of the tree of encodings of a page; immutable except for caches."""

    @property
    def capacity(self) -> int | None:
        """Number of values that the bytes can hold; None if only reading tells, or no bytes are needed."""

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Read runs of values.

        Raises:
            CorruptError: The bytes do not hold the values.
        """


def both_valid(one: Bytes | None, other: Bytes | None) -> Bytes | None:
    """Return the validity of values that are valid where both validities say so."""
    if one is None or other is None:
        return other if one is None else one
    return np.bitwise_and(one, other)
