"""Arrays with nulls: a validity array (bits, 1 = valid) beside the values, or no bytes at all when all are null."""

from __future__ import annotations

from dataclasses import dataclass

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.v20.array import MAX_COUNT, EncodedArray, PageValues, both_valid
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError
from lance_duck.store.request import Request, gather


@dataclass(frozen=True, slots=True)
class SomeNulls:
    """Values, some of them null."""

    validity: EncodedArray
    values: EncodedArray

    @property
    def capacity(self) -> int | None:
        """Number of values that both parts can hold."""
        capacities = [c for c in (self.validity.capacity, self.values.capacity) if c is not None]
        return min(capacities, default=None)

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return the values, with their validity."""
        flags, values = yield from gather([self.validity.read(runs), self.values.read(runs)])
        if not isinstance(flags.block, FixedWidth) or flags.block.bits != 1:
            raise CorruptError("validity of a nullable array", expected="values of one bit")
        if values.block is None:
            return values
        return PageValues(values.block, both_valid(flags.block.data, values.validity), values.count)


@dataclass(frozen=True, slots=True)
class AllNulls:
    """An array of nulls."""

    @property
    def capacity(self) -> None:
        """None: any number of values can be read."""
        return None

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return nulls."""
        yield from ()
        if runs.count > MAX_COUNT:
            raise CorruptError("more nulls than one read can give", expected=f"at most {MAX_COUNT}", found=runs.count)
        return PageValues(None, None, runs.count)
