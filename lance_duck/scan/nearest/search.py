"""A vector search. It searches segments and uncovered fragments in parallel, and merges the rows by distance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.cache import LruCache
from lance_duck.index.catalog import Segment
from lance_duck.index.search import ask
from lance_duck.index.vector.search.contract import Probe, VectorIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import ALWAYS_COMPARED_ROWS, COARSE_REFINE_FACTOR, COMPARED_SHARE
from lance_duck.scan.filters import Filter
from lance_duck.scan.indexes.bounds import RowBounds
from lance_duck.scan.indexes.conjuncts import conjuncts_of
from lance_duck.scan.indexes.selection import Choices
from lance_duck.scan.nearest.best import Neighbours, joined_neighbours, ranked_neighbours
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.covered import CoveredVectors, covered_vectors
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.hits import NOTHING, hit_rows, is_beyond, least_count
from lance_duck.scan.nearest.options import Nearest
from lance_duck.scan.nearest.passing_rows import Allowed, PassingRows, cache_key, passing_rows
from lance_duck.scan.nearest.route import Route, route
from lance_duck.scan.nearest.settings.curve import Curve, choose, words
from lance_duck.scan.nearest.settings.segment_curves import curves_of, k_measured
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.costs import REQUESTS_AT_ONCE
from lance_duck.telemetry.metrics import INDEX_USES
from lance_duck.wire.fragment import Fragment

Work = Callable[[], Neighbours | None]

_KEPT_PROBES: Final = 64


@dataclass(frozen=True)
class SegmentProbe:
    """The settings for the search of one segment.

    Attributes:
        probe: Settings of the index search, such as the number of partitions.
        candidates: Number of rows to find per query.
        is_refined: Whether candidates are reranked with their original vectors.
    """

    probe: Probe
    candidates: int
    is_refined: bool

    @property
    def must_fill(self) -> bool:
        """Whether a segment must find `candidates` rows if it contains at least as many."""
        return self.probe.max_nprobes is None and self.probe.lower is None and self.probe.upper is None

    def widened(self) -> SegmentProbe:
        """Return a probe that finds four times as many candidates."""
        return replace(self, candidates=4 * self.candidates)


@dataclass(frozen=True, eq=False)
class PreparedSearch:
    """A search for the nearest rows, planned before its queries are known. Safe to run from several threads.

    Attributes:
        table: The table.
        nearest: The arguments of the search.
        plan: The plan of the rows that may be found: the fragments, and a filter that applies before the search.
        post: A filter that is applied to the nearest rows after the search, or None.
        fast: Whether to skip rows that no segment covers.
        workers: Thread count. None means one per core.
    """

    table: TableScan
    nearest: Nearest
    plan: ScanPlan
    post: Filter | None = None
    fast: bool = False
    workers: int | None = None

    def run(self, queries: NDArray[Any], log: list[str] | None = None) -> Neighbours:
        """Return the nearest rows, ordered by query and distance.

        Args:
            queries: (n, dim), the vectors from `Nearest.queries`.
            log: List that receives one line per step, or None.
        """
        vectors = self._askable(queries)
        if not len(vectors) or not self.k:
            return NOTHING
        self.note_use()
        is_part = len(vectors) < len(queries)
        result = _NearestRun(self, queries[vectors] if is_part else queries, log).nearest()
        if is_part:
            result = replace(result, queries=vectors[result.queries])
        return result if self.post is None else self.passing(self.post, result)

    def note_use(self) -> None:
        """Count a use of the index, if there is one."""
        if self.route.segments:
            INDEX_USES.add(self.route.segments[0][0].kind.name)

    @cached_property
    def route(self) -> Route:
        """The segments to search, each with the fragments that it covers."""
        return route(self.table.snapshot, self.nearest, self.plan.fragment_ids)

    @cached_property
    def refine_factor(self) -> int | None:
        """Number of candidates to rerank with their original vectors, as a multiple of k. None skips reranking.

        The user's argument takes precedence. The default is larger than 1 if the order of candidates is not precise:
        2 if segments store rounded vectors, and 4 if their codes are compared coarsely. It is 1 if segments store
        codes, and distances must be exact or comparable with the distances of other segments or rows.
        """
        nearest = self.nearest
        if nearest.refine_factor is not None:
            return nearest.refine_factor
        if any(self._is_coarse(segment) for segment, _ in self.route.segments):
            return COARSE_REFINE_FACTOR
        if any(self._rounds(segment) for segment, _ in self.route.segments):
            return 2
        is_exact = nearest.exact_distance or not (nearest.promise is None or self.is_plain)
        return 1 if is_exact and not all(self._is_exact(segment) for segment, _ in self.route.segments) else None

    @cached_property
    def probes(self) -> LruCache[SegmentProbe | None]:
        """Cache of the probes that reach the recall.

        A key contains the UUID of the segment, the number of its rows that may be found, and whether the filter is
        correlated with the vectors.
        """
        return LruCache(_KEPT_PROBES)

    @cached_property
    def k(self) -> int:
        """Number of neighbours per query. A large number is limited to the row count."""
        if self.nearest.k <= ALWAYS_COMPARED_ROWS and len(self.plan.fragments):
            return self.nearest.k
        return min(self.nearest.k, self.num_rows)

    @cached_property
    def is_plain(self) -> bool:
        """Whether one segment covers all rows. Its result is then final, unless candidates are reranked."""
        nearest = self.nearest
        whole = self.fast or not self.route.open
        return len(self.route.segments) == 1 and whole and nearest.lower is None and nearest.upper is None

    @cached_property
    def exact(self) -> Exact:
        """The exact search of the column."""
        return Exact(self.table.snapshot, self.table.columns, self.nearest.column, self.workers)

    @cached_property
    def explicit_probe(self) -> SegmentProbe:
        """The probe with explicit settings, or with default settings that do not guarantee a recall."""
        nearest = self.nearest
        least = Probe().nprobes if nearest.max_nprobes is None else min(Probe().nprobes, nearest.max_nprobes)
        return self._probe(nearest.nprobes or least, nearest.ef, self.refine_factor)

    def measured_probe(
        self, segment: Segment, index: VectorIndex, rows: CoveredVectors, allowed: Allowed
    ) -> SegmentProbe | None:
        """Return the probe that reaches the recall for the allowed rows of a segment, or None if no probe does."""
        curves = self._curves(segment, index, rows, allowed)
        setting = choose(curves, self.nearest.recall, self._least_candidates(index))
        if setting is None:
            return None
        probe = self._probe(setting.nprobes, setting.ef, self.refine_factor if setting.candidates is None else 1)
        share = allowed[1] / index.num_rows
        probe = replace(probe, probe=replace(probe.probe, share=share, recall=self.nearest.recall))
        if setting.candidates is None:
            return probe
        return replace(probe, candidates=max(setting.candidates, self.k))

    def described_recall(self, segment: Segment, index: VectorIndex, rows: CoveredVectors, allowed: Allowed) -> str:
        """Describe the settings that reach the recall for the allowed rows of a segment."""
        curves = self._curves(segment, index, rows, allowed)
        text = words(curves, self.nearest.recall, self.k, self._least_candidates(index))
        return (
            f"{text}; nprobes is a start value, because the filter correlates with the vectors"
            if tied(index, allowed)
            else text
        )

    def _curves(self, segment: Segment, index: VectorIndex, rows: CoveredVectors, allowed: Allowed) -> list[Curve]:
        is_tied = tied(index, allowed)
        return curves_of(self.table, self.nearest.column, segment, index, rows, self.k, allowed[1], is_tied=is_tied)

    def _least_candidates(self, index: VectorIndex) -> int:
        """Return the minimum number of candidates to rerank, or 0.

        Settings that were measured for more neighbours also find the requested neighbours. However, codes hardly
        determine the order of these neighbours.
        """
        measured = k_measured(self.k)
        return 0 if index.is_exact or measured == self.k else measured

    def _probe(self, nprobes: int, ef: int | None, refine_factor: int | None) -> SegmentProbe:
        nearest, refined = self.nearest, refine_factor is not None
        bounds = (None, None) if refined else (nearest.lower, nearest.upper)
        return SegmentProbe(Probe(nprobes, nearest.max_nprobes, ef, *bounds), self.k * (refine_factor or 1), refined)

    @cached_property
    def num_rows(self) -> int:
        """Number of rows in the fragments to search."""
        return sum(self.table.snapshot.num_rows(fragment) for fragment in self.plan.fragments)

    @cached_property
    def most_compared(self) -> int:
        """If at most this many rows pass the filter, they are compared one by one without an index."""
        return max(ALWAYS_COMPARED_ROWS, self.num_rows // COMPARED_SHARE)

    @cached_property
    def named(self) -> ScanPlan:
        """The plan of a scan that returns the addresses of the rows that may be found."""
        return replace(self.plan, projection=project(self.plan.schema, [ROW_ADDRESS]))

    def filtered(self) -> PassingRows | None:
        """Return the rows that pass the filter, from the cache or from a scan, or None without a filter."""
        condition = self.plan.filter
        if condition is None:
            return None
        if self.plan.fragments is not self.table.snapshot.fragments:
            return PassingRows(self._passing_all())
        return passing_rows(self.table, cache_key(self.table, condition), self._passing_all)

    def question(self, queries: NDArray[Any]) -> Question:
        """Return the exact search of blocks of vectors for these queries."""
        typed = np.ascontiguousarray(queries, self.nearest.column.dtype)
        return Question(self.route.metric, typed, self.k, self.nearest.lower, self.nearest.upper)

    def _askable(self, queries: NDArray[Any]) -> NDArray[np.int64]:
        """Return the indices of the queries that can have neighbours. For cosine, zero vectors are excluded."""
        if self.route.metric != "cosine":
            return np.arange(len(queries))
        return np.flatnonzero(queries.any(axis=1))

    def _is_exact(self, segment: Segment) -> bool:
        """Return whether a segment stores the original vectors instead of codes."""
        return bool(ask(self.table.snapshot, segment, lambda index: index.is_exact))

    def _is_coarse(self, segment: Segment) -> bool:
        """Return whether the codes of a segment are compared coarsely."""
        return bool(ask(self.table.snapshot, segment, lambda index: index.shape.is_coarse))

    def _rounds(self, segment: Segment) -> bool:
        """Return whether a segment stores normalized vectors, or vectors of a narrower type than the table's."""
        numbers = segment.type.value_type
        if numbers in (pa.float32(), pa.uint8()) or (numbers != pa.float64() and self.route.metric != "cosine"):
            return False
        return self._is_exact(segment)

    def _passing_all(self) -> RowSet:
        return self._addresses(self.table.routed(self.named))

    def _addresses(self, plan: ScanPlan) -> RowSet:
        batches = scan_batches(self.table.snapshot, plan, self.table.columns, self.workers)
        return RowSet.union([RowSet.of(batch.column(0).to_numpy()) for batch in batches])

    def passing(self, filter_: Filter, neighbours: Neighbours) -> Neighbours:
        """Return the neighbours whose rows pass a filter."""
        rows = self._addresses(selected(self.named, RowSet.of(distinct(neighbours.addresses)), filter_))
        return neighbours.where(np.isin(neighbours.addresses, rows.rows()))


def probe_of(search: PreparedSearch, segment: Segment, fragment_ids: frozenset[int]) -> SegmentProbe | None:
    """Return the probe of a segment, or None if the segment is corrupt or its rows must be compared exactly."""
    return _NearestRun(search, np.empty((0, search.nearest.column.dim)), None).probe(segment, fragment_ids)


class _NearestRun:
    """A prepared search with its queries.

    Args:
        search: The search.
        queries: (n, dim). All of them can have neighbours.
        log: List that receives one line per step, or None.
    """

    def __init__(self, search: PreparedSearch, queries: NDArray[Any], log: list[str] | None) -> None:
        self._search = search
        self._queries = queries
        self._log = log
        self._exact = search.exact
        self._filtered = None if search.fast and not search.route.segments else search.filtered()

    def nearest(self) -> Neighbours:
        """Return the nearest rows, ordered by query and distance."""
        search, rows = self._search, self._rows
        if not search.route.segments:
            return NOTHING if search.fast else self._compared(search.plan.fragments, rows)
        if rows is not None and len(rows) <= search.most_compared:
            if search.fast:
                rows = rows.only(search.plan.fragment_ids - search.route.open)
            if self._log is not None:
                self._log.append(f"{len(rows)} rows pass the filter, and were compared one by one")
            return self._compared(search.plan.fragments, rows)
        probes = [self.probe(*pair) for pair in search.route.segments]
        probe = probes[0]
        if search.is_plain and probe is not None and not (probe.is_refined and self._exact.is_remote):
            result = self._segment(*search.route.segments[0], probe)
            if result is not None and probe.is_refined:
                return self._exact.rerank(search.question(self._queries), result)
            if result is not None:
                return ranked_neighbours(result, len(self._queries), search.k)
        return self._beside(probes)

    @property
    def _rows(self) -> RowSet | None:
        """The rows that pass the filter, or None without a filter."""
        return None if self._filtered is None else self._filtered.rows

    def probe(self, segment: Segment, fragment_ids: frozenset[int]) -> SegmentProbe | None:
        """Return the probe of a segment, or None if the segment is corrupt or its rows must be compared exactly."""
        search = self._search
        if search.nearest.promise is None:
            return search.explicit_probe

        def choose(index: VectorIndex) -> SegmentProbe | None:
            rows, allowed = self._allowed(segment, fragment_ids, index)
            if not allowed[1]:
                return search.explicit_probe
            key = segment.uuid, allowed[1], tied(index, allowed)
            if self._log is not None:
                self._log.append(
                    f"segment {str(segment.uuid)[:8]}: {search.described_recall(segment, index, rows, allowed)}"
                )
            return search.probes.get(key, lambda: search.measured_probe(segment, index, rows, allowed))

        return ask(search.table.snapshot, segment, choose)

    def _beside(self, probes: Sequence[SegmentProbe | None]) -> Neighbours:
        """Return the nearest rows from segments, and from fragments that are compared exactly."""
        search, pairs = self._search, self._search.route.segments
        fragment_ids = frozenset() if search.fast else search.route.open
        fragment_ids = fragment_ids.union(
            *(fragments for (_, fragments), probe in zip(pairs, probes, strict=True) if probe is None)
        )
        probed = [(pair, probe) for pair, probe in zip(pairs, probes, strict=True) if probe is not None]
        work: list[Work] = [partial(self._segment, *pair, probe) for pair, probe in probed]
        if fragment_ids:
            work.append(partial(self._rest, fragment_ids))
        if any(way.is_refined for _, way in probed) and len(search.plan.fragments) <= REQUESTS_AT_ONCE:
            work += [self._open] * self._exact.is_remote
        results = _side_by_side(work)
        answers = [(each, probe) for each, (_, probe) in zip(results, probed, strict=False) if each is not None]
        refined = [each for each, probe in answers if probe.is_refined]
        parts = [each for each, probe in answers if not probe.is_refined]
        if refined:
            ranked = self._exact.rerank(search.question(self._queries), joined_neighbours(refined))
            if self._lies_further(refined, ranked, probed[0][1].candidates):
                if self._log is not None:
                    self._log.clear()
                return self._beside([None if probe is None else probe.widened() for probe in probes])
            parts.append(ranked)
        failed = [fragments for ((_, fragments), _), each in zip(probed, results, strict=False) if each is None]
        parts += [each for each in results[len(probed) :] if each is not None]
        parts += [self._rest(fragments) for fragments in failed if not search.fast]
        found = [self._within(each) for each in parts]
        return ranked_neighbours(joined_neighbours(found), len(self._queries), search.k)

    def _lies_further(self, parts: Sequence[Neighbours], ranked: Neighbours, candidates: int) -> bool:
        """Return whether the minimum distance removed candidates, so that more distant rows may be missing."""
        nearest, count = self._search.nearest, len(self._queries)
        if nearest.lower is None:
            return False
        more = np.zeros(count, np.bool_)
        for each in parts:
            near = each if nearest.upper is None else each.where(each.distances < nearest.upper)
            more |= np.bincount(near.queries, minlength=count) >= candidates
        return bool((more & (np.bincount(ranked.queries, minlength=count) < self._search.k)).any())

    def _within(self, rows: Neighbours) -> Neighbours:
        """Return the rows whose distances are within the range of the search."""
        nearest = self._search.nearest
        if nearest.lower is not None:
            rows = rows.where(rows.distances >= nearest.lower)
        return rows if nearest.upper is None else rows.where(rows.distances < nearest.upper)

    def _rest(self, fragment_ids: frozenset[int]) -> Neighbours:
        """Return the nearest rows of some fragments, found without an index."""
        fragments = [fragment for fragment in self._search.plan.fragments if fragment.id in fragment_ids]
        return self._compared(fragments, self._rows)

    def _open(self) -> None:
        """Open the vector column during the segment searches, because reranking will read it."""
        self._exact.open(self._search.plan.fragments)

    def _compared(self, fragments: Sequence[Fragment], rows: RowSet | None) -> Neighbours:
        return self._exact.search(fragments, rows, self._search.question(self._queries))

    def _segment(self, segment: Segment, fragment_ids: frozenset[int], probe: SegmentProbe) -> Neighbours | None:
        """Return the nearest rows of a segment, or None if the segment is corrupt or does not find enough rows."""
        search, queries = self._search, self._queries

        def look(index: VectorIndex) -> Neighbours | None:
            rows, (allowed, count) = self._allowed(segment, fragment_ids, index)
            if not count:
                return NOTHING
            num_candidates = min(probe.candidates, count)
            typed = queries if queries.dtype == np.float32 else np.ascontiguousarray(queries, np.float32)
            hits = index.search(typed, num_candidates, allowed, probe.probe)
            if not search.fast and is_beyond(hits, typed):
                return None
            rows_of_segment = hit_rows(hits, rows, segment, index.num_rows)
            if rows_of_segment is None:
                return self._again(segment, fragment_ids, rows)
            if probe.must_fill and len(rows_of_segment) < hits.positions.size and least_count(hits) < num_candidates:
                return None
            if self._log is not None:
                self._log.append(f"segment {str(segment.uuid)[:8]}: {len(rows_of_segment)} of {count} rows")
            return rows_of_segment

        return ask(search.table.snapshot, segment, look)

    def _again(self, segment: Segment, fragment_ids: frozenset[int], rows: CoveredVectors) -> Neighbours | None:
        """Repeat `_segment` after reading which rows of the segment are live."""
        rows.know()
        probe = self.probe(segment, fragment_ids)
        return None if probe is None else self._segment(segment, fragment_ids, probe)

    def _allowed(
        self, segment: Segment, fragment_ids: frozenset[int], index: VectorIndex
    ) -> tuple[CoveredVectors, Allowed]:
        """Return the rows of a segment, a mask of the entries that may be found (None for all), and their number."""
        rows = covered_vectors(self._search.table.snapshot, segment, index)
        if self._filtered is None:
            return rows, rows.presumed(fragment_ids)
        return rows, self._filtered.allowed(rows, segment.uuid, fragment_ids)


def tied(index: VectorIndex, allowed: Allowed) -> bool:
    """Return whether the filter of a search is correlated with the vectors of a segment."""
    return allowed[0] is not None and index.is_tied(allowed[0])


def selected(plan: ScanPlan, rows: RowSet, filter_: Filter) -> ScanPlan:
    """Return the plan that scans `rows` with a filter."""
    parts = conjuncts_of(filter_)
    bounds = RowBounds(RowSet({}), rows, plan.fragment_ids)
    return replace(plan, filter=filter_, choices=Choices(parts, [bounds] * len(parts)))


def _side_by_side(work: Sequence[Work]) -> list[Neighbours | None]:
    """Run tasks in parallel, and return their results."""
    if len(work) == 1:
        return [work[0]()]
    with ThreadPoolExecutor(len(work), thread_name_prefix="lance_duck-nearest") as pool:
        return list(pool.map(lambda each: each(), work))
