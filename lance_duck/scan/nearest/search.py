"""A whole search: rows of the filter, segments and the rest of the table side by side, merged by distance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.search import ask
from lance_duck.index.vector.search.contract import Hits, Probe, VectorIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter
from lance_duck.scan.indexes.bounds import RowBounds
from lance_duck.scan.indexes.conjuncts import conjuncts_of
from lance_duck.scan.indexes.selection import Choices
from lance_duck.scan.nearest.best import Best, Found, in_order, joined
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

FEW: Final = 1024
"""So few rows of a filter are always compared one by one."""

RARE: Final = 200
"""So are they where they are less than one of so many."""

Work = Callable[[], Found | None]

NOTHING: Final = Found(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint64))


@dataclass(frozen=True, eq=False)
class Search:
    """A search for the nearest rows.

    Attributes:
        table: Where.
        nearest: What is asked.
        plan: The rows that may be found: fragments, and a filter that holds before the search.
        post: A filter that is applied to the nearest rows; None: none is.
        fast: Rows that no segment covers are left out.
        workers: Threads; None: one for each core.
        log: What was done, in words.
    """

    table: TableScan
    nearest: Nearest
    plan: ScanPlan
    post: Filter | None = None
    fast: bool = False
    workers: int | None = None
    log: list[str] = field(default_factory=list)

    def run(self) -> Found:
        """Return the nearest rows, by query, nearest first."""
        self.log.clear()
        asked = self._askable
        if not len(asked) or not self.k:
            return NOTHING
        found = self._all(asked)
        if len(asked) < len(self.nearest.queries):
            found = replace(found, queries=asked[found.queries])
        return found if self.post is None else self._passing(self.post, found)

    def asking(self, nearest: Nearest) -> Search:
        """Return the same for other queries: what is known stays known, but for the rows of a filter."""
        other = object.__new__(Search)
        other.__dict__.update(self.__dict__, nearest=nearest, log=[])
        for name in ("_rows", "_filtered"):
            other.__dict__.pop(name, None)
        return other

    @cached_property
    def route(self) -> Route:
        """Which way it goes."""
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

    def _is_exact(self, segment: Segment) -> bool:
        """Return whether a segment holds the vectors themselves, and no codes of them."""
        return bool(ask(self.table.snapshot, segment, lambda index: index.is_exact))

    def _rounds(self, segment: Segment) -> bool:
        """Return whether a segment holds vectors less exact than the table's: normalized or narrower."""
        numbers = segment.type.value_type
        if numbers in (pa.float32(), pa.uint8()) or (numbers != pa.float64() and self.route.metric != "cosine"):
            return False
        return self._is_exact(segment)

    @cached_property
    def k(self) -> int:
        """Neighbours of each query, no more than there are rows."""
        if self.nearest.k <= FEW and len(self.plan.fragments):
            return self.nearest.k
        return min(self.nearest.k, sum(self.table.snapshot.num_rows(f) for f in self.plan.fragments))

    @property
    def _askable(self) -> NDArray[np.int64]:
        """Queries that have neighbours: for the angle, those that point anywhere."""
        queries = self.nearest.queries
        if self.route.metric != "cosine":
            return np.arange(len(queries))
        return np.flatnonzero(queries.any(axis=1))

    def _all(self, asked: NDArray[np.int64]) -> Found:
        queries = self.nearest.queries
        queries = queries if len(asked) == len(queries) else queries[asked]
        exact = Exact(self.table.snapshot, self.table.columns, self.nearest.column, self.workers)
        if not self.route.segments:
            if self.fast:
                return NOTHING
            return exact.search(self.plan.fragments, self._rows, self._question(queries))
        rows = self._rows
        if rows is not None and len(rows) <= max(FEW, self.plan_rows // RARE):
            if self.fast:
                rows = rows.only(self.plan.fragment_ids - self.route.open)
            self.log.append(f"{len(rows)} rows pass the filter, and were compared one by one")
            return exact.search(self.plan.fragments, rows, self._question(queries))
        if self._is_plain:
            found = self._segment(*self.route.segments[0], queries, rows)
            if found is not None:
                return in_order(found, len(queries), self.k)
        return self._beside(exact, queries, rows)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether one segment answers for all rows, and its answer stands."""
        nearest = self.nearest
        ranked = self.refine_factor is not None or nearest.lower is not None or nearest.upper is not None
        whole = self.fast or not self.route.open
        return len(self.route.segments) == 1 and whole and not ranked

    def _beside(self, exact: Exact, queries: NDArray[np.float32], rows: RowSet | None) -> Found:
        """Return segments, and what they do not cover."""
        best = Best(len(queries), self.k)
        left = frozenset() if self.fast else self.route.open
        work: list[Work] = [partial(self._segment, *pair, queries, rows) for pair in self.route.segments]
        if left:
            work.append(partial(self._rest, exact, queries, rows, left))
        results = _side_by_side(work)
        found = [each for each in results[: len(self.route.segments)] if each is not None]
        if self.refine_factor is not None and found:
            ranked = exact.again(self._question(queries), joined(found))
            if self._lies_further(found, ranked, len(queries)):
                self.log.clear()
                wider = replace(self.nearest, refine_factor=4 * self.refine_factor)
                return replace(self, nearest=wider)._beside(exact, queries, rows)
            found = [ranked]
        failed: list[frozenset[int]] = [
            mine for (_, mine), each in zip(self.route.segments, results, strict=False) if each is None
        ]
        found += [each for each in results[len(self.route.segments) :] if each is not None]
        found += [self._rest(exact, queries, rows, mine) for mine in failed if not self.fast]
        for each in found:
            best.add(self._within(each))
        return best.found()

    def _lies_further(self, found: Sequence[Found], ranked: Found, queries: int) -> bool:
        """Return whether a lower bound dropped rows that rows farther away may replace."""
        if self.nearest.lower is None:
            return False
        wanted = self.k * (self.refine_factor or 1)
        more = np.zeros(queries, np.bool_)
        for each in found:
            near = each if self.nearest.upper is None else each.where(each.distances < self.nearest.upper)
            more |= np.bincount(near.queries, minlength=queries) >= wanted
        return bool((more & (np.bincount(ranked.queries, minlength=queries) < self.k)).any())

    def _within(self, found: Found) -> Found:
        """Keep hits within the requested range of distances."""
        if self.nearest.lower is not None:
            found = found.where(found.distances >= self.nearest.lower)
        return found if self.nearest.upper is None else found.where(found.distances < self.nearest.upper)

    def _rest(self, exact: Exact, queries: NDArray[np.float32], rows: RowSet | None, mine: frozenset[int]) -> Found:
        """Return the nearest rows of some fragments, found without an index."""
        fragments = [fragment for fragment in self.plan.fragments if fragment.id in mine]
        return exact.search(fragments, rows, self._question(queries))

    def _segment(
        self, segment: Segment, mine: frozenset[int], queries: NDArray[np.float32], rows: RowSet | None
    ) -> Found | None:
        """Return the nearest rows of a segment; None: it is broken, or finds fewer rows than there are."""

        def search(index: VectorIndex) -> Found | None:
            all_ = covered(self.table.snapshot, segment, index)
            if rows is None or self._filtered is None:
                allowed, count = all_.allowed(rows, mine)
            else:
                allowed, count = self._filtered.allowed(all_, segment, mine)
            if not count:
                return NOTHING
            wanted = min(self.k * (self.refine_factor or 1), count)
            typed = queries if queries.dtype == np.float32 else np.ascontiguousarray(queries, np.float32)
            hits = index.search(typed, wanted, allowed, self.probe)
            found = _found(hits, all_.addresses, segment)
            if self._must_fill and len(found) < hits.positions.size and _least(hits) < wanted:
                return None
            self.log.append(f"segment {str(segment.uuid)[:8]}: {len(found)} of {count} rows")
            return found

        return ask(self.table.snapshot, segment, search)

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
    def _must_fill(self) -> bool:
        """Whether a segment has to find as many rows as are asked for, if it has them."""
        return self.nearest.max_nprobes is None and self.probe.lower is None and self.probe.upper is None

    @cached_property
    def plan_rows(self) -> int:
        """Rows of the fragments."""
        return sum(self.table.snapshot.num_rows(fragment) for fragment in self.plan.fragments)

    @cached_property
    def _rows(self) -> RowSet | None:
        """Rows that pass the filter; None: there is none."""
        return None if self._filtered is None else self._filtered.rows

    @cached_property
    def _filtered(self) -> Filtered | None:
        condition = self.plan.filter
        if condition is None:
            return None
        if self.plan.fragments is not self.table.snapshot.fragments:
            return Filtered(self._passing_all())
        return filtered(self.table, condition, self._passing_all)

    def _passing_all(self) -> RowSet:
        return self._addresses(self.table.routed(self.named))

    @cached_property
    def named(self) -> ScanPlan:
        """The scan of the rows that may be found, by address."""
        return replace(self.plan, projection=project(self.plan.schema, [ROW_ADDRESS]))

    def _addresses(self, plan: ScanPlan) -> RowSet:
        batches = scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)
        return RowSet.union([RowSet.of(batch.column(0).to_numpy()) for batch in batches])

    def _passing(self, filter_: Filter, found: Found) -> Found:
        """Keep the nearest rows that pass a filter."""
        rows = self._addresses(chosen(self.named, RowSet.of(np.unique(found.addresses)), filter_))
        return found.where(np.isin(found.addresses, rows.rows()))

    def _question(self, queries: NDArray[np.float32]) -> Question:
        typed = np.ascontiguousarray(queries, self.nearest.column.dtype)
        return Question(self.route.metric, typed, self.k, self.nearest.lower, self.nearest.upper)


def _found(hits: Hits, addresses: NDArray[np.uint64], segment: Segment) -> Found:
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
    return Found(queries, distances, addresses[positions])


def _least(hits: Hits) -> int:
    """Return neighbours of the query that has fewest."""
    return int((hits.positions >= 0).sum(axis=1).min())


def chosen(plan: ScanPlan, rows: RowSet, filter_: Filter) -> ScanPlan:
    """Return the plan of those of the given rows that pass a filter."""
    parts = conjuncts_of(filter_)
    bounds = RowBounds(RowSet({}), rows, plan.fragment_ids)
    return replace(plan, filter=filter_, choices=Choices(parts, [bounds] * len(parts)))


def _side_by_side(work: Sequence[Work]) -> list[Found | None]:
    """Return the results of pieces of work, done at the same time."""
    if len(work) == 1:
        return [work[0]()]
    with ThreadPoolExecutor(len(work), thread_name_prefix="lance_duck-nearest") as pool:
        return list(pool.map(lambda each: each(), work))
