"""Selections: for each fragment, the rows to read and the remaining filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter
from lance_duck.scan.indexes.bounds import NOTHING, RowBounds
from lance_duck.scan.indexes.conjuncts import Conjunct, conjunction
from lance_duck.scan.indexes.lookup import LookupOutcome


@dataclass(frozen=True, eq=False)
class Choices:
    """The rows that a scan reads after the index lookups, and the conditions that it still evaluates.

    Attributes:
        parts: Conditions of the filter.
        bounds: Bounds of each condition, from index lookups.
        log: Outcomes of the lookups.
    """

    parts: Sequence[Conjunct]
    bounds: Sequence[RowBounds]
    log: Sequence[LookupOutcome] = ()

    @cached_property
    def total(self) -> RowBounds:
        """Intersection of the bounds of all conditions."""
        if len(self.bounds) == 1:
            return self.bounds[0]
        return reduce(RowBounds.__and__, self.bounds, NOTHING)

    @property
    def rows(self) -> RowSet:
        """Rows to read in the closed fragments, possibly including deleted rows."""
        return self.total.maybe

    def is_open(self, fragment_id: int) -> bool:
        """Return whether a fragment is scanned completely, with the whole filter."""
        return fragment_id not in self.total.closed

    def closes(self, count: int) -> bool:
        """Return whether all of the `count` fragments of a plan are closed."""
        return len(self.total.closed) == count

    def offsets(self, fragment_id: int) -> NDArray[np.int64]:
        """Return the offsets of the rows to read in a closed fragment, ascending int64."""
        return self.rows.offsets(fragment_id)

    def residual(self, fragment_id: int) -> Filter | None:
        """Return the remaining filter for the rows of a closed fragment, or None if indexes decided all conditions."""
        if len(self.parts) == 1 and self.parts[0].exact and self.bounds[0].is_exact:
            return None if fragment_id in self.bounds[0].closed else self.parts[0].filter
        return self._filter(tuple(fragment_id in settled for settled in self._settled))

    @cached_property
    def _settled(self) -> list[frozenset[int]]:
        """Fragments, per condition, in which every row to read satisfies the condition."""
        result = []
        for part, bounds in zip(self.parts, self.bounds, strict=True):
            if not part.exact or not bounds.closed:
                result.append(frozenset[int]())
            elif bounds.is_exact:
                result.append(bounds.closed)
            else:
                result.append(bounds.closed.difference((self.rows - bounds.sure).fragment_ids))
        return result

    @cached_property
    def _filters(self) -> dict[tuple[bool, ...], Filter | None]:
        return {}

    def _filter(self, settled: tuple[bool, ...]) -> Filter | None:
        """Return one filter with the unsettled conditions. The filter is cached for each value of `settled`."""
        if settled not in self._filters:
            conditions = [part.filter for part, done in zip(self.parts, settled, strict=True) if not done]
            self._filters[settled] = conjunction(conditions)
        return self._filters[settled]
