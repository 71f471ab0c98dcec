"""Finds the best rows that pass a filter. The filter is evaluated only on the best rows of an unfiltered search.

Scores do not depend on a filter, and the order of rows is fixed. The first rows that pass are therefore the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from lance_duck.scan.costs import CHECKED_FOR_EACH, CHECKED_SHARE, SMALL_BATCH_ROWS
from lance_duck.scan.filters import AllFilters, ExpressionFilter, Filter, SqlFilter, TreeFilter
from lance_duck.scan.nearest.passing_rows import comes_again
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import Projection, project
from lance_duck.scan.table_scan import TableScan


class RankedRows(Protocol):
    """Rows that a search found, best first."""

    @property
    def addresses(self) -> NDArray[np.uint64]:
        """Addresses of the rows."""

    def __len__(self) -> int: ...

    def where(self, mask: NDArray[np.bool_]) -> Self:
        """Return the rows that a mask selects."""

    def take(self, places: NDArray[np.int64]) -> Self:
        """Return the rows at these positions, in this order."""


_R = TypeVar("_R", bound=RankedRows)


def is_checked(table: TableScan, plan: ScanPlan, most: int) -> bool:
    """Return whether to evaluate a plan's filter on the best rows. The filter must be new, and not covered by indexes.

    A filter that was seen before is likely to be used again. For such filters, all rows that pass are found and cached.

    Args:
        table: The table.
        plan: Plan of the rows that may be found.
        most: Number of rows to find.
    """
    condition = plan.filter
    if condition is None or plan.fragments is not table.snapshot.fragments or not _reads_columns(condition):
        return False
    if CHECKED_FOR_EACH * most > _most_checked(table) or comes_again(table, condition):
        return False
    return not plan.use_index or table.routes(condition).are_open


def best_passing(table: TableScan, plan: ScanPlan, most: int, best: Callable[[int], _R], log: list[str]) -> _R | None:
    """Return the best rows that pass the filter of a plan.

    Args:
        table: The table.
        plan: Plan of the rows to search. `is_checked` is true for it.
        most: Number of rows to find, at least 1.
        best: Function that returns at most the given number of best rows, ignoring the filter.
        log: List that receives one line per step, for plans.

    Returns:
        The rows, best first, or None if very few rows pass. A search of only the passing rows is then faster.
    """
    condition = plan.filter
    assert condition is not None  # see `is_checked`
    projection = project(plan.schema, list(dict.fromkeys(path[0] for path in condition.paths())))
    count = CHECKED_FOR_EACH * most
    while count <= _most_checked(table):
        ranking = best(count)
        passing = _passing(table, condition, projection, ranking)
        log.append(f"{len(passing)} of the best {len(ranking)} rows pass the filter")
        if len(passing) >= most or len(ranking) < count:
            return passing.take(np.arange(min(most, len(passing))))
        count = 2 * count * most // max(1, len(passing))
    return None


def _passing(table: TableScan, condition: Filter, projection: Projection, ranking: _R) -> _R:
    """Return the rows that pass a filter, in the same order."""
    if not len(ranking):
        return ranking
    order = np.argsort(ranking.addresses)
    rows = table.taker.by_address(ranking.addresses[order], projection)
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    passes = np.zeros(len(order), np.bool_)
    passes[order] = condition.mask(columns, rows.num_rows).to_numpy(zero_copy_only=False)
    return ranking.where(passes)


def _reads_columns(condition: Filter) -> bool:
    """Return whether a filter reads columns, and nothing else."""
    if isinstance(condition, AllFilters):
        return all(map(_reads_columns, condition.parts))
    return isinstance(condition, TreeFilter | SqlFilter | ExpressionFilter)


def _most_checked(table: TableScan) -> int:
    return max(SMALL_BATCH_ROWS, table.snapshot.count_rows() // CHECKED_SHARE)
