"""A whole search: rows of the filter, segments and the rest of the table side by side, merged by distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.search import ask
from lance_duck.index.vector.search.contract import Hits, Probe, VectorIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import ALWAYS_COMPARED_ROWS, COMPARED_SHARE
from lance_duck.scan.filters import Filter
from lance_duck.scan.indexes.bounds import RowBounds
from lance_duck.scan.indexes.conjuncts import conjuncts_of
from lance_duck.scan.indexes.selection import Choices
from lance_duck.scan.nearest.best import Best, Neighbours, in_order, joined
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.covered import covered
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.filtered import Filtered, filtered
from lance_duck.scan.nearest.options import Nearest
from lance_duck.scan.nearest.route import Route, route
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.fragment import Fragment

Work = Callable[[], Neighbours | None]

NOTHING: Final = Neighbours(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint64))


@dataclass(frozen=True, eq=False)
class PreparedSearch:
    """A search for the nearest rows, decided but for its queries. Safe to run from several threads.

    Attributes:
        table: The table.
        nearest: What is asked.
        plan: The rows that may be found: fragments, and a filter that holds before the search.
        post: A filter that is applied to the nearest rows; None for none.
        fast: Rows that no segment covers are left out.
        workers: Threads; None for one for each core.
    """

    table: TableScan
    nearest: Nearest
    plan: ScanPlan
    post: Filter | None = None
    fast: bool = False
    workers: int | None = None

    def run(self, queries: NDArray[Any], log: list[str] | None = None) -> Neighbours:
        """Return the nearest rows, by query, nearest first.

        Args:
            queries: (n, dim), as `Nearest.queries` gives them.
            log: Takes what was done, in words.
        """
        vectors = self._askable(queries)
        if not len(vectors) or not self.k:
            return NOTHING
        some = len(vectors) < len(queries)
        result = _Run(self, queries[vectors] if some else queries, [] if log is None else log).nearest()
        if some:
            result = replace(result, queries=vectors[result.queries])
        return result if self.post is None else self._passing(self.post, result)

    @cached_property
    def route(self) -> Route:
        """Which segments answer for which fragments."""
        return route(self.table.snapshot, self.nearest, self.plan.fragment_ids)

    @cached_property
    def refine_factor(self) -> int | None:
        """So many times k candidates are ranked by their own vectors: as asked for, or 2 where segments round them.

        1: just the rows that codes found, where distances have to be exact.
        """
        nearest = self.nearest
        if nearest.refine_factor is not None:
            return nearest.refine_factor
        if any(self._rounds(segment) for segment, _ in self.route.segments):
            return 2
        return (
            1
            if nearest.exact_distance and not all(self._is_exact(segment) for segment, _ in self.route.segments)
            else None
        )

    @cached_property
    def k(self) -> int:
        """Neighbours of each query, no more than there are rows."""
        if self.nearest.k <= ALWAYS_COMPARED_ROWS and len(self.plan.fragments):
            return self.nearest.k
        return min(self.nearest.k, self.num_rows)

    @cached_property
    def is_plain(self) -> bool:
        """Whether one segment answers for all rows, and its answer stands."""
        nearest = self.nearest
        ranked = self.refine_factor is not None or nearest.lower is not None or nearest.upper is not None
        whole = self.fast or not self.route.open
        return len(self.route.segments) == 1 and whole and not ranked

    @cached_property
    def probe(self) -> Probe:
        """How far to look in a segment."""
        nearest = self.nearest
        refined = self.refine_factor is not None
        least = Probe().nprobes if nearest.max_nprobes is None else min(Probe().nprobes, nearest.max_nprobes)
        return Probe(
            nearest.nprobes or least,
            nearest.max_nprobes,
            nearest.ef,
            None if refined else nearest.lower,
            None if refined else nearest.upper,
        )

    @property
    def must_fill(self) -> bool:
        """Whether a segment has to find as many rows as are asked for, if it has them."""
        return self.nearest.max_nprobes is None and self.probe.lower is None and self.probe.upper is None

    @cached_property
    def num_rows(self) -> int:
        """Rows of the fragments."""
        return sum(self.table.snapshot.num_rows(fragment) for fragment in self.plan.fragments)

    @cached_property
    def most_compared(self) -> int:
        """Rows of a filter up to which they are compared one by one, without the index."""
        return max(ALWAYS_COMPARED_ROWS, self.num_rows // COMPARED_SHARE)

    @cached_property
    def named(self) -> ScanPlan:
        """The scan of the rows that may be found, by address."""
        return replace(self.plan, projection=project(self.plan.schema, [ROW_ADDRESS]))

    def filtered(self) -> Filtered | None:
        """Return the rows that pass the filter, looked for now unless a cache has them; None without a filter."""
        condition = self.plan.filter
        if condition is None:
            return None
        if self.plan.fragments is not self.table.snapshot.fragments:
            return Filtered(self._passing_all())
        return filtered(self.table, condition, self._passing_all)

    def question(self, queries: NDArray[Any]) -> Question:
        """Return what is asked of blocks of vectors."""
        typed = np.ascontiguousarray(queries, self.nearest.column.dtype)
        return Question(self.route.metric, typed, self.k, self.nearest.lower, self.nearest.upper)

    def _askable(self, queries: NDArray[Any]) -> NDArray[np.int64]:
        """Return the queries that have neighbours: for the angle, those that point anywhere."""
        if self.route.metric != "cosine":
            return np.arange(len(queries))
        return np.flatnonzero(queries.any(axis=1))

    def _is_exact(self, segment: Segment) -> bool:
        """Return whether a segment holds the vectors themselves, and no codes of them."""
        return bool(ask(self.table.snapshot, segment, lambda index: index.is_exact))

    def _rounds(self, segment: Segment) -> bool:
        """Return whether a segment holds vectors less exact than the table's: normalized or narrower."""
        numbers = segment.type.value_type
        if numbers in (pa.float32(), pa.uint8()) or (numbers != pa.float64() and self.route.metric != "cosine"):
            return False
        return self._is_exact(segment)

    def _passing_all(self) -> RowSet:
        return self._addresses(self.table.routed(self.named))

    def _addresses(self, plan: ScanPlan) -> RowSet:
        batches = scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)
        return RowSet.union([RowSet.of(batch.column(0).to_numpy()) for batch in batches])

    def _passing(self, filter_: Filter, neighbours: Neighbours) -> Neighbours:
        """Keep the nearest rows that pass a filter."""
        rows = self._addresses(selected(self.named, RowSet.of(np.unique(neighbours.addresses)), filter_))
        return neighbours.where(np.isin(neighbours.addresses, rows.rows()))


class _Run:
    """A prepared search with its queries.

    Args:
        search: The search.
        queries: (n, dim); all have neighbours.
        log: Takes what was done, in words.
    """

    def __init__(self, search: PreparedSearch, queries: NDArray[Any], log: list[str]) -> None:
        self._search = search
        self._queries = queries
        self._log = log
        table = search.table
        self._exact = Exact(table.snapshot, table.columns, search.nearest.column, search.workers)
        self._filtered = None if search.fast and not search.route.segments else search.filtered()

    def nearest(self) -> Neighbours:
        """Return the nearest rows, by query, nearest first."""
        search, rows = self._search, self._rows
        if not search.route.segments:
            return NOTHING if search.fast else self._compared(search.plan.fragments, rows)
        if rows is not None and len(rows) <= search.most_compared:
            if search.fast:
                rows = rows.only(search.plan.fragment_ids - search.route.open)
            self._log.append(f"{len(rows)} rows pass the filter, and were compared one by one")
            return self._compared(search.plan.fragments, rows)
        if search.is_plain:
            result = self._segment(*search.route.segments[0], search.k)
            if result is not None:
                return in_order(result, len(self._queries), search.k)
        return self._beside(search.refine_factor)

    @property
    def _rows(self) -> RowSet | None:
        """Rows that pass the filter; None without one."""
        return None if self._filtered is None else self._filtered.rows

    def _beside(self, refine_factor: int | None) -> Neighbours:
        """Return the best of what segments find, and of the rows that none of them covers."""
        search = self._search
        candidates = search.k * (refine_factor or 1)
        fragment_ids = frozenset() if search.fast else search.route.open
        work: list[Work] = [partial(self._segment, *pair, candidates) for pair in search.route.segments]
        if fragment_ids:
            work.append(partial(self._rest, fragment_ids))
        results = _side_by_side(work)
        candidates_by_segment = [each for each in results[: len(search.route.segments)] if each is not None]
        if refine_factor is not None and candidates_by_segment:
            ranked = self._exact.again(search.question(self._queries), joined(candidates_by_segment))
            if self._lies_further(candidates_by_segment, ranked, candidates):
                self._log.clear()
                return self._beside(4 * refine_factor)
            candidates_by_segment = [ranked]
        failed: list[frozenset[int]] = [
            mine for (_, mine), each in zip(search.route.segments, results, strict=False) if each is None
        ]
        candidates_by_segment += [each for each in results[len(search.route.segments) :] if each is not None]
        candidates_by_segment += [self._rest(mine) for mine in failed if not search.fast]
        best = Best(len(self._queries), search.k)
        for each in candidates_by_segment:
            best.add(self._within(each))
        return best.neighbours()

    def _lies_further(self, parts: Sequence[Neighbours], ranked: Neighbours, candidates: int) -> bool:
        """Return whether a lower bound dropped rows that rows farther away may replace."""
        nearest, count = self._search.nearest, len(self._queries)
        if nearest.lower is None:
            return False
        more = np.zeros(count, np.bool_)
        for each in parts:
            near = each if nearest.upper is None else each.where(each.distances < nearest.upper)
            more |= np.bincount(near.queries, minlength=count) >= candidates
        return bool((more & (np.bincount(ranked.queries, minlength=count) < self._search.k)).any())

    def _within(self, rows: Neighbours) -> Neighbours:
        """Keep the rows within the range of distances that is asked for."""
        nearest = self._search.nearest
        if nearest.lower is not None:
            rows = rows.where(rows.distances >= nearest.lower)
        return rows if nearest.upper is None else rows.where(rows.distances < nearest.upper)

    def _rest(self, fragment_ids: frozenset[int]) -> Neighbours:
        """Return the nearest rows of some fragments, found without an index."""
        fragments = [fragment for fragment in self._search.plan.fragments if fragment.id in fragment_ids]
        return self._compared(fragments, self._rows)

    def _compared(self, fragments: Sequence[Fragment], rows: RowSet | None) -> Neighbours:
        return self._exact.search(fragments, rows, self._search.question(self._queries))

    def _segment(self, segment: Segment, fragment_ids: frozenset[int], candidates: int) -> Neighbours | None:
        """Return the nearest rows of a segment; None if it is broken, or finds fewer rows than there are."""
        search, queries = self._search, self._queries

        def look(index: VectorIndex) -> Neighbours | None:
            rows = covered(search.table.snapshot, segment, index)
            if self._filtered is None:
                allowed, count = rows.allowed(None, fragment_ids)
            else:
                allowed, count = self._filtered.allowed(rows, segment.uuid, fragment_ids)
            if not count:
                return NOTHING
            num_candidates = min(candidates, count)
            typed = queries if queries.dtype == np.float32 else np.ascontiguousarray(queries, np.float32)
            hits = index.search(typed, num_candidates, allowed, search.probe)
            rows_of_segment = _found(hits, rows.addresses, segment)
            if search.must_fill and len(rows_of_segment) < hits.positions.size and _least(hits) < num_candidates:
                return None
            self._log.append(f"segment {str(segment.uuid)[:8]}: {len(rows_of_segment)} of {count} rows")
            return rows_of_segment

        return ask(search.table.snapshot, segment, look)


def _found(hits: Hits, addresses: NDArray[np.uint64], segment: Segment) -> Neighbours:
    positions, distances = hits.positions.ravel(), hits.distances.ravel()
    if not len(positions):
        return NOTHING
    queries = np.repeat(np.arange(len(hits.positions)), hits.positions.shape[1])
    least, most = int(np.minimum.reduce(positions)), int(np.maximum.reduce(positions))
    if most >= len(addresses):
        raise CorruptError("position", where=segment, expected=f"< {len(addresses)}", found=most)
    if least < 0 or not (math.isfinite(np.maximum.reduce(distances)) and math.isfinite(np.minimum.reduce(distances))):
        there = (positions >= 0) & np.isfinite(distances)
        queries, positions, distances = queries[there], positions[there], distances[there]
    return Neighbours(queries, distances, addresses[positions])


def _least(hits: Hits) -> int:
    """Return the neighbours of the query that has fewest."""
    return int((hits.positions >= 0).sum(axis=1).min())


def selected(plan: ScanPlan, rows: RowSet, filter_: Filter) -> ScanPlan:
    """Return the plan of the rows, among some, that pass a filter."""
    parts = conjuncts_of(filter_)
    bounds = RowBounds(RowSet({}), rows, plan.fragment_ids)
    return replace(plan, filter=filter_, choices=Choices(parts, [bounds] * len(parts)))


def _side_by_side(work: Sequence[Work]) -> list[Neighbours | None]:
    """Return the results of pieces of work, done at the same time."""
    if len(work) == 1:
        return [work[0]()]
    with ThreadPoolExecutor(len(work), thread_name_prefix="lance_duck-nearest") as pool:
        return list(pool.map(lambda each: each(), work))
