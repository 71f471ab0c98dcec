"""Routing: selects the indexes for a filter or for a column's extremes, and plans the rows that they choose."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.index.aggregates import count
from lance_duck.index.aggregates import extremes as indexed_extremes
from lance_duck.index.catalog import ColumnIndex, IndexCatalog, catalog
from lance_duck.redact import shown
from lance_duck.scan.costs import ANSWER_ROWS, ANSWER_SHARE
from lance_duck.scan.filters import Filter, SqlFilter
from lance_duck.scan.indexes.conjuncts import Conjunct, conjuncts_of
from lance_duck.scan.indexes.lookup import IndexRows, LookupOutcome
from lance_duck.scan.indexes.plan import EVERY, IndexLeaf, IndexPlan, Open, is_open, plan_index
from lance_duck.scan.indexes.selection import Choices
from lance_duck.scan.plan import ScanPlan
from lance_duck.snapshot import Snapshot

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Routes:
    """The index plans for a filter.

    Attributes:
        parts: Conditions of the filter.
        plans: The index plan for each condition.
        estimates: Maximum row count of each plan leaf, by the leaf's `id()`. Estimates are added when first computed.
    """

    parts: Sequence[Conjunct]
    plans: Sequence[IndexPlan]
    estimates: dict[int, int | None] = field(default_factory=dict)

    @property
    def are_open(self) -> bool:
        """Whether no index covers any condition."""
        return not any(isinstance(plan, IndexLeaf) or not (is_open(plan) or plan == EVERY) for plan in self.plans)


def routes(filter_: Filter, indexes: IndexCatalog) -> Routes:
    """Assign the conditions of a filter to indexes, without searching them."""
    parts = conjuncts_of(filter_)
    return Routes(parts, [_plan(part, indexes) for part in parts])


def routed(snapshot: Snapshot, plan: ScanPlan, index_routes: Routes | None = None) -> ScanPlan:
    """Search the indexes, and return the plan with the rows that they choose.

    Without suitable indexes, returns the same plan.

    Args:
        snapshot: The version of the table.
        plan: The plan of the scan.
        index_routes: Index plans for the plan's filter. None computes them.
    """
    if plan.filter is None or not _may_route(plan):
        return plan
    index_routes = index_routes or routes(plan.filter, catalog(snapshot))
    if index_routes.are_open:
        return plan
    estimates = index_routes.estimates if plan.fragments is snapshot.fragments else None
    rows = IndexRows(snapshot, plan.fragment_ids, estimates)
    choices = Choices(index_routes.parts, rows.each(index_routes.plans), rows.log)
    if _LOG.isEnabledFor(logging.DEBUG):
        _log_lookups(snapshot, rows.log)
    return replace(plan, choices=choices)


def _log_lookups(snapshot: Snapshot, outcomes: Iterable[LookupOutcome]) -> None:
    """Log the lookups of a plan, without the values that they search."""
    for outcome in outcomes:
        part = outcome.part
        names = ", ".join(index.name for index in part.indexes) if isinstance(part, IndexLeaf) else "row names"
        found = outcome.refused or f"{sum(rows or 0 for rows in outcome.rows.values())} rows"
        _LOG.debug("%s version %d: %s: %s", shown(snapshot.uri), snapshot.version, names, found)


def counted(snapshot: Snapshot, plan: ScanPlan, index_routes: Routes) -> int | None:
    """Count the rows that pass a plan's filter from an index alone, without limit and offset.

    Returns:
        The number of rows, or None if no index can count them or the plan reads only part of the table.
    """
    if not _may_route(plan) or len(index_routes.plans) != 1 or plan.fragments is not snapshot.fragments:
        return None
    part, leaf = index_routes.parts[0], index_routes.plans[0]
    if not part.exact or not isinstance(leaf, IndexLeaf):
        return None
    totals = (count(snapshot, index, leaf.query) for index in leaf.indexes)
    return next((total for total in totals if total is not None), None)


def rows_expected(snapshot: Snapshot, index_routes: Routes) -> int | None:
    """Return the maximum number of rows that a scan with indexes reads, or None if no index helps."""
    best = _best_estimate(snapshot, index_routes)
    return None if best is None else sum(best)


def rows_left(snapshot: Snapshot, index_routes: Routes) -> int | None:
    """Return the maximum number of rows that a scan with indexes reads, or None if no index excludes enough rows.

    Unlike `rows_expected`, searches the indexes if that is the only way to know the number.
    """
    best = _best_estimate(snapshot, index_routes)
    if best is None:
        if index_routes.are_open:
            return None
        rows = IndexRows(snapshot, snapshot.fragments.id_set, index_routes.estimates)
        choices = Choices(index_routes.parts, rows.each(index_routes.plans), rows.log)
        if not choices.total.closed:
            return None
        best = len(choices.rows), _open_rows(snapshot, choices.total.closed)
    chosen, rest = best
    is_most = chosen > max(ANSWER_ROWS, ANSWER_SHARE * (snapshot.count_rows() - rest))
    return None if is_most else chosen + rest


def _best_estimate(snapshot: Snapshot, index_routes: Routes) -> tuple[int, int] | None:
    """Return the maximum number of rows that the best index chooses, and the number of rows that it does not cover."""
    if index_routes.are_open:
        return None
    rows = IndexRows(snapshot, snapshot.fragments.id_set, index_routes.estimates)
    estimates = [(rows.expected(plan), rows.closes(plan)) for plan in index_routes.plans]
    helping = [(count, _open_rows(snapshot, closed)) for count, closed in estimates if count is not None and closed]
    return min(helping, key=sum, default=None)


def rows_chosen(plan: ScanPlan) -> int | None:
    """Return the number of rows that indexes chose, or None if some fragments are scanned."""
    if plan.choices is None or not plan.choices.closes(len(plan.fragment_ids)):
        return None
    return len(plan.choices.rows)


def _may_route(plan: ScanPlan) -> bool:
    return plan.use_index and not plan.include_deleted and plan.choices is None


def _open_rows(snapshot: Snapshot, closed: frozenset[int]) -> int:
    if len(closed) == len(snapshot.fragments):
        return 0
    counts = zip(snapshot.fragments.ids(), snapshot.row_counts(), strict=True)
    return sum(count for fragment_id, count in counts if fragment_id not in closed)


def _plan(part: Conjunct, indexes: IndexCatalog) -> IndexPlan:
    if part.implied is None:
        by = "DuckDB" if isinstance(part.filter, SqlFilter) else "pyarrow, as an unknown expression"
        return Open(f"{part.filter} is evaluated by {by}")
    return plan_index(part.implied, indexes)


ReadColumn = Callable[[Iterable[int]], Iterable[pa.Array]]
"""Reads the column from the fragments with these ids, batch by batch."""


def extremes(snapshot: Snapshot, path: str, type_: pa.DataType, read: ReadColumn) -> tuple[pa.Scalar, pa.Scalar] | None:
    """Return the minimum and maximum of a column.

    Args:
        snapshot: The version of the table.
        path: Dotted path of the column.
        type_: Type of the column. Only numbers, dates, timestamps, strings and bytes have a known order.
        read: Reads the column from the fragments that the chosen index does not cover.

    Returns:
        The minimum and the maximum, both null if all rows are null. None if no index covers at least half of the rows,
        or if a value is NaN.
    """
    if not _is_ordered(type_):
        return None
    for index in catalog(snapshot).over(path):
        if index.segments[0].type == type_ and _covers_most(snapshot, index):
            values = indexed_extremes(snapshot, index)
            if values is not None:
                rest = set(snapshot.fragments.ids()) - set(index.fragments.tolist())
                return _ends(chain([values], read(sorted(rest)) if rest else ()), type_)
    return None


def _ends(parts: Iterable[pa.Array], type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    ends: list[pa.Scalar] = []
    for values in parts:
        if pa.types.is_floating(type_) and pc.any(pc.is_nan(values)).as_py():
            return None
        ends += pc.min_max(values).values()
    pair = pc.min_max(pa.array(ends, type_))
    return pair["min"], pair["max"]


def _is_ordered(type_: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(type_) for test in (*tests, *texts)) and type_ != pa.float16()


def _covers_most(snapshot: Snapshot, index: ColumnIndex) -> bool:
    covered = sum(snapshot.num_rows(snapshot.fragment(number)) for number in index.fragments.tolist())
    return covered * 2 >= snapshot.count_rows()
