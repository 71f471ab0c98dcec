"""Recall curves of segments. Some curves are stored with an index, and other curves are measured on first use.

All curves are cached while the segment is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Final
from weakref import WeakKeyDictionary

from lance_duck.forks import Lock
from lance_duck.index.catalog import Segment
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.scan.costs import ALWAYS_COMPARED_ROWS, ALWAYS_INDEXED_SHARE
from lance_duck.scan.nearest.covered import CoveredRows
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.nearest.settings.curve import Curve
from lance_duck.scan.nearest.settings.measure import candidate_cost, everything, measure
from lance_duck.scan.nearest.settings.sample import draw
from lance_duck.scan.nearest.settings.stored import decoded, recall_file_bytes
from lance_duck.scan.table_scan import TableScan
from lance_duck.store import local_path

SHARES: Final = (1.0, 0.25, 0.05, 0.005)
"""Filter selectivities for which settings are measured. For lower selectivities, rows are compared one by one."""

STORED_K: Final = 10
"""Number of neighbours for which settings are stored. A search for fewer neighbours is hardly cheaper: in 100,000 rows,
1 neighbour took 4 partitions, and 10 neighbours took 5."""

_STEPS: Final = (1, 2, 5, 10)
_WHOLE: Final = 0.9  # minimum share that is treated as all rows


class _SegmentCurves:
    """The curves of a segment, by k and filter selectivity."""

    def __init__(self, curves: Iterable[Curve] = ()) -> None:
        self.lock = Lock()
        self.curves = {(curve.k, curve.share): curve for curve in curves}

    def get(self, key: tuple[int, float], measure: Callable[[], Curve]) -> Curve:
        """Return a cached curve, or measure it. Only one thread measures a curve."""
        curve = self.curves.get(key)
        if curve is None:
            with self.lock:
                curve = self.curves.get(key)
                if curve is None:
                    curve = self.curves[key] = measure()
        return curve


_CURVES: Final[WeakKeyDictionary[VectorIndex, _SegmentCurves]] = WeakKeyDictionary()
_LOCK: Final = Lock()


def curves_of(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    index: VectorIndex,
    rows: CoveredRows,
    k: int,
    num_allowed: int,
    *,
    is_tied: bool = False,
) -> list[Curve]:
    """Return the curves for the next greater measured k and the adjacent row shares. Missing curves are measured.

    If the filter is correlated with the vectors, it may pass any share of the rows near a query. Therefore, the curves
    for all greater shares are included.

    Args:
        table: The table.
        column: The vector column.
        segment: The segment.
        index: The opened segment.
        rows: The rows that the segment covers.
        k: Number of neighbours per query.
        num_allowed: Number of rows in the segment that may be found.
        is_tied: Whether the filter is correlated with the vectors.
    """
    entry = _CURVES.get(index)
    if entry is None:
        with _LOCK:
            entry = _CURVES.setdefault(index, _SegmentCurves(decoded(index.files.recall, index)))
    return [
        entry.get((k_measured(k), share), partial(_measured, table, column, segment, index, rows, k_measured(k), share))
        for share in shares_measured(num_allowed / max(index.num_rows, 1), is_tied=is_tied)
    ]


def measured_at_build(
    table: TableScan, column: VectorColumn, segment: Segment, index: VectorIndex, rows: CoveredRows
) -> bytes | None:
    """Measure the curves that most searches need. Returns the file to store with the index, or None if it is empty.

    The curves are for `STORED_K` neighbours, and for each share of rows for which the index is searched.

    Args:
        table: The table.
        column: The vector column.
        segment: The segment, which is not yet part of the table.
        index: The opened segment.
        rows: The rows that the segment covers.
    """
    shares = [SHARES[0]] + [
        share for more, share in pairwise(SHARES) if more * index.num_rows > max(ALWAYS_COMPARED_ROWS, STORED_K)
    ]
    curves = [_measured(table, column, segment, index, rows, STORED_K, share) for share in shares]
    stored = [curve for curve in curves if curve.queries and curve.measured]
    return recall_file_bytes(index, stored) if stored else None


def shares_measured(share: float, *, is_tied: bool = False) -> list[float]:
    """Return the measured shares just below and above a share of the rows, or the equal one.

    Args:
        share: Share of the rows that may be found, 0 to 1.
        is_tied: Whether to include all greater measured shares.
    """
    if share >= _WHOLE:
        return [SHARES[0]]
    less = next((place for place, each in enumerate(SHARES) if each <= share), len(SHARES) - 1)
    if is_tied:
        return list(SHARES[: less + 1])
    return [SHARES[less]] if SHARES[less] == share else [SHARES[less - 1], SHARES[less]]


def k_measured(k: int) -> int:
    """Return the smallest k, at least the requested one, for which settings are measured: 10, 20, 50, 100, …."""
    k = max(k, STORED_K)
    power: int = 10 ** (len(str(k)) - 1)
    return next(step * power for step in _STEPS if step * power >= k)


def _measured(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    index: VectorIndex,
    rows: CoveredRows,
    k: int,
    share: float,
) -> Curve:
    if index.num_rows <= max(ALWAYS_COMPARED_ROWS, ALWAYS_INDEXED_SHARE * k):
        return everything(index, k)
    sample = draw(table, column, segment, index, rows, k, share)
    if sample is None:
        return everything(index, k)
    is_remote = local_path(table.snapshot.uri) is None
    return measure(index, sample, k, share, candidate_cost(column.dim * column.dtype.itemsize, is_remote=is_remote))
