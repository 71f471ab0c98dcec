"""The interface of array encodings of 2.0 pages, their decoded values, and arrays with nulls.

An array with some nulls stores a validity array (bits, 1 = valid) next to its values. An all-null array stores nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request, gather

MAX_COUNT = 2**31 - 1
"""Maximum number of values in one read of a page."""


@dataclass(frozen=True, slots=True)
class PageValues:
    """Values of a page.

    Attributes:
        block: The value slots, or None if all values are null.
        validity: uint8, 0 or 1 for each value, or None if all values are valid or the block is None.
        count: Number of values.
    """

    block: Block | None
    validity: Bytes | None
    count: int


class EncodedArray(Protocol):
    """A node in a page's encoding tree; immutable except for caches."""

    @property
    def capacity(self) -> int | None:
        """Number of values that the bytes can hold. None if that is unknown before reading, or no bytes are needed."""

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Read runs of values.

        Raises:
            CorruptError: The bytes do not hold the values.
        """


def both_valid(one: Bytes | None, other: Bytes | None) -> Bytes | None:
    """Combine two validities: a value is valid if both arrays mark it valid."""
    if one is None or other is None:
        return other if one is None else one
    return np.bitwise_and(one, other)


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """Values, some of them null."""

    validity: EncodedArray
    values: EncodedArray

    @property
    def capacity(self) -> int | None:
        """Number of values that both arrays can hold."""
        capacities = [c for c in (self.validity.capacity, self.values.capacity) if c is not None]
        return min(capacities, default=None)

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return the values, with their validity."""
        flags, values = yield from gather([self.validity.read(runs), self.values.read(runs)])
        if not isinstance(flags.block, FixedWidth) or flags.block.bits != 1:
            raise CorruptError("the validity of a nullable array has the wrong width", expected="1 bit")
        if values.block is None:
            return values
        return PageValues(values.block, both_valid(flags.block.data, values.validity), values.count)


@dataclass(frozen=True, slots=True)
class AllNulls:
    """An array of nulls."""

    @property
    def capacity(self) -> None:
        """Always None: any number of values can be read."""
        return None

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return nulls."""
        yield from ()
        if runs.count > MAX_COUNT:
            raise CorruptError(
                "one read cannot return this many nulls", expected=f"at most {MAX_COUNT}", found=runs.count
            )
        return PageValues(None, None, runs.count)
