"""Bounds of a condition: the rows that certainly satisfy it, and the rows that may satisfy it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance_duck.rows.row_set import RowSet


@dataclass(frozen=True, eq=False)
class RowBounds:
    """The bounds of a condition, as sets of row addresses.

    Attributes:
        sure: Rows of closed fragments that satisfy the condition. It is the same object as `maybe` if the bounds are
            exact.
        maybe: Rows of closed fragments that may satisfy the condition. All other rows of these fragments do not.
        closed: Ids of the fragments that the bounds cover. In other fragments, any row may satisfy the condition.
    """

    sure: RowSet
    maybe: RowSet
    closed: frozenset[int]

    @property
    def is_exact(self) -> bool:
        """Whether the bounds decide the condition for every row of the closed fragments."""
        return self.sure is self.maybe

    def __and__(self, other: RowBounds) -> RowBounds:
        if not self.closed or not other.closed:
            bounded = self if self.closed else other
            return RowBounds(RowSet({}), bounded.maybe, bounded.closed)
        both = self.closed & other.closed
        maybe = self.maybe & other.maybe
        if len(both) == len(self.closed) == len(other.closed):
            sure = maybe if self.is_exact and other.is_exact else self.sure & other.sure
            return RowBounds(sure, maybe, both)
        alone = [b.maybe.only(b.closed - both) for b in (self, other)]
        return RowBounds(self.sure & other.sure, RowSet.union([maybe, *alone]), self.closed | other.closed)

    def __or__(self, other: RowBounds) -> RowBounds:
        both = self.closed & other.closed
        maybe = (self.maybe | other.maybe).only(both)
        sure = maybe if self.is_exact and other.is_exact else (self.sure | other.sure).only(both)
        return RowBounds(sure, maybe, both)

    def narrowed(self, closed: frozenset[int]) -> RowBounds:
        """Return the bounds, restricted to some of the fragments."""
        if closed >= self.closed:
            return self
        closed = closed & self.closed
        maybe = self.maybe.only(closed)
        return RowBounds(maybe if self.is_exact else self.sure.only(closed), maybe, closed)


NOTHING: Final = RowBounds(RowSet({}), RowSet({}), frozenset())


def beside(first: RowBounds, second: RowBounds) -> RowBounds:
    """Combine bounds that cover different fragments."""
    if not first.closed or not second.closed:
        return first if first.closed else second
    maybe = first.maybe | second.maybe
    sure = maybe if first.is_exact and second.is_exact else first.sure | second.sure
    return RowBounds(sure, maybe, first.closed | second.closed)
