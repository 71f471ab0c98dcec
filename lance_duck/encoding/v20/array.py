"""What an array encoding of a 2.0 page gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lance_duck.encoding.block import Block
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request

MAX_COUNT = 2**31 - 1
"""Values that one read of a page may ask for."""


@dataclass(frozen=True, slots=True)
class PageValues:
    """Values of a page.

    Attributes:
        block: The value slots, or None when all values are null.
        validity: uint8, one byte (0 or 1) a value; None when no value is null, or the block is None.
        count: Number of values.
    """

    block: Block | None
    validity: Bytes | None
    count: int


class EncodedArray(Protocol):
    """One node of the tree of encodings of a page; immutable but for caches."""

    @property
    def capacity(self) -> int | None:
        """Values that its bytes can hold; None when that shows only on reading, or it needs none."""

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Read runs of values.

        Raises:
            CorruptError: The bytes do not hold them.
        """


def both_valid(one: Bytes | None, other: Bytes | None) -> Bytes | None:
    """Return the validity of values that are valid when both say so."""
    if one is None or other is None:
        return other if one is None else one
    return np.bitwise_and(one, other)
