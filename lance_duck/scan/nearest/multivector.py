"""Late interaction: exact and index searches of a column with several vectors in each row.

All vectors of a search form one query. The distance of a row is a sum over the query vectors: each query vector adds
its distance to the nearest vector of the row. An index finds the nearest vectors, and a score of each row is computed
from them. The exact distances of the rows with the best scores are then computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.search import ask
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.multivectors import vectors_in
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import BLOCK_BYTES, RANKED_FOR_EACH, TASK_ROWS, VECTORS_FOR_EACH
from lance_duck.scan.nearest.best import Neighbours, TopK, joined_neighbours
from lance_duck.scan.nearest.covered import covered_vectors
from lance_duck.scan.nearest.hits import NOTHING, is_beyond
from lance_duck.scan.nearest.passing_rows import PassingRows
from lance_duck.scan.nearest.search import PreparedSearch
from lance_duck.scan.projection import ROW_ADDRESS, project
from lance_duck.scan.read.execute import scan_batches


class MultivectorSearch(PreparedSearch):
    """A search of rows that each contain several vectors. The query also consists of several vectors.

    Distances are always exact, because the rows that an index finds are compared. Settings do not depend on a recall.
    """

    def run(self, queries: NDArray[Any], log: list[str] | None = None) -> Neighbours:
        """Return the nearest rows, nearest first.

        Args:
            queries: (n, dim), the vectors of the query. For cosine, zero vectors are ignored.
            log: List that receives one line per step, or None.
        """
        vectors = queries[queries.any(axis=1)] if self.route.metric == "cosine" else queries
        if not len(vectors) or not self.k:
            return NOTHING
        self.note_use()
        result = self._nearest(np.ascontiguousarray(vectors), log)
        return result if self.post is None else self.passing(self.post, result)

    @cached_property
    def refine_factor(self) -> int:
        """Number of rows to compare exactly after an index search, as a multiple of k."""
        return self.nearest.refine_factor or RANKED_FOR_EACH

    def _nearest(self, vectors: NDArray[Any], log: list[str] | None) -> Neighbours:
        route, best = self.route, TopK(1, self.k)
        if self.fast and not route.segments:
            return NOTHING
        filtered = self.filtered()
        rows = None if filtered is None else filtered.rows
        compared = route.open
        few = rows is not None and len(rows) <= self.most_compared
        if few or not route.segments or self.nearest.recall >= 1:
            compared = self.plan.fragment_ids
            if few and log is not None:
                log.append("few rows pass the filter, and were compared one by one")
        else:
            candidates, failed = self._candidates(vectors, filtered, log)
            best.add(self._ranked(vectors, candidates))
            compared = compared if self.fast else compared | failed
        if self.fast:
            compared -= route.open
        for each in self._compared(vectors, compared, rows):
            best.add(each)
        return best.neighbours()

    def _candidates(
        self, vectors: NDArray[Any], filtered: PassingRows | None, log: list[str] | None
    ) -> tuple[NDArray[np.uint64], frozenset[int]]:
        """Return the addresses of the rows that segments find, and the fragments that must be compared instead."""
        num_vectors = VECTORS_FOR_EACH * self.k
        while True:
            parts: list[Neighbours] = []
            failed: frozenset[int] = frozenset()
            count = 0
            for segment, fragment_ids in self.route.segments:
                part = self._part(segment, fragment_ids, vectors, filtered, num_vectors)
                if part is None:
                    failed |= fragment_ids
                else:
                    parts.append(part[0])
                    count = max(count, part[1])
            near = nearest_vectors(joined_neighbours(parts), num_vectors)
            rows = best_rows(near, self.k * self.refine_factor)
            if len(rows) >= self.k or num_vectors >= count:
                if log is not None:
                    log.append(f"{len(near)} vectors of {len(np.unique(near.addresses))} rows, {len(rows)} compared")
                return rows, failed
            num_vectors *= 4  # a few rows with many near vectors displaced other rows

    def _part(
        self,
        segment: Segment,
        fragment_ids: frozenset[int],
        vectors: NDArray[Any],
        filtered: PassingRows | None,
        num_vectors: int,
    ) -> tuple[Neighbours, int] | None:
        """Return the segment's nearest vectors, grouped by row, and how many vectors the search may find.

        Return None if the segment is corrupt or its distances overflow float32. The caller then compares the rows.
        """

        def look(index: VectorIndex) -> tuple[Neighbours, int] | None:
            rows = covered_vectors(self.table.snapshot, segment, index)
            if filtered is None:
                allowed, count = rows.allowed(None, fragment_ids)
            else:
                allowed, count = filtered.allowed(rows, segment.uuid, fragment_ids)
            if not count:
                return NOTHING, 0
            hits = index.search(vectors, min(num_vectors, count), allowed, self.explicit_probe.probe)
            if not self.fast and is_beyond(hits, vectors):
                return None
            is_hit = (hits.positions >= 0) & np.isfinite(hits.distances)
            queries, _ = np.nonzero(is_hit)
            return Neighbours(queries, hits.distances[is_hit], rows.addresses[hits.positions[is_hit]]), count

        return ask(self.table.snapshot, segment, look)

    def _ranked(self, vectors: NDArray[Any], addresses: NDArray[np.uint64]) -> Neighbours:
        """Return the rows at these addresses, with their distances."""
        ordered = np.sort(addresses)
        projection = project(self.plan.schema, [self.nearest.column.path, ROW_ADDRESS])
        parts: list[Neighbours] = []
        for first in range(0, len(ordered), TASK_ROWS):
            batch = self.table.taker.by_address(ordered[first : first + TASK_ROWS], projection)
            parts.append(self._near(vectors, batch))
        return joined_neighbours(parts)

    def _compared(
        self, vectors: NDArray[Any], fragment_ids: frozenset[int], rows: RowSet | None
    ) -> Iterator[Neighbours]:
        """Yield the rows of some fragments that pass a filter, with their distances."""
        if not fragment_ids:
            return
        if rows is not None:
            yield self._ranked(vectors, rows.only(fragment_ids).rows())
            return
        fragments = [fragment for fragment in self.plan.fragments if fragment.id in fragment_ids]
        projection = project(self.plan.schema, [self.nearest.column.path, ROW_ADDRESS])
        plan = replace(self.plan, fragments=fragments, projection=projection, batch_rows=TASK_ROWS)
        for batch in scan_batches(self.table.snapshot, plan, self.table.columns, self.workers):
            yield self._near(vectors, batch)

    def _near(self, vectors: NDArray[Any], batch: pa.RecordBatch) -> Neighbours:
        """Return the rows of a batch (column, address) whose distances are within the range of the search."""
        distances = row_distances(self.route.metric, vectors, batch.column(0))
        is_near = ~np.isnan(distances)
        if self.nearest.lower is not None:
            is_near &= distances >= self.nearest.lower
        if self.nearest.upper is not None:
            is_near &= distances < self.nearest.upper
        addresses = batch.column(1).to_numpy()
        return Neighbours(np.zeros(int(is_near.sum()), np.int64), distances[is_near], addresses[is_near])


def row_distances(metric: str, query: NDArray[Any], array: pa.Array) -> NDArray[np.float32]:
    """Return the distance of each row, float32 (rows,). Rows without a usable vector get NaN.

    Args:
        metric: Name of the metric, from `metric_of`.
        query: (vectors, dim), float32, or uint8 for hamming.
        array: The rows, as lists of vectors with `dim` numbers.
    """
    items, counts = vectors_in(array)
    vectors = vectors_of(items, metric=metric)
    owners = np.repeat(np.arange(len(counts)), counts)[vectors.usable]
    values = vectors.values if vectors.usable.all() else vectors.values[vectors.usable]
    rows, starts = np.unique(owners, return_index=True)
    ends = np.append(starts[1:], len(owners))
    result = np.full(len(counts), np.nan, np.float32)
    for first, last in _groups(ends, 8 * len(query) + 16 * query.shape[1]):
        begin = int(starts[first])
        pairs = distances(metric, query, values[begin : ends[last - 1]])
        nearest = np.minimum.reduceat(pairs, starts[first:last] - begin, axis=1)
        result[rows[first:last]] = nearest.sum(axis=0, dtype=np.float64)
    return result


def _groups(ends: NDArray[np.int64], width: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows whose vectors are compared at a time. Each range contains at least one row.

    Args:
        ends: End of each row's vectors, in vectors.
        width: Size of a vector during the comparison, in bytes.
    """
    first = before = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, before + BLOCK_BYTES // width, "right"))
        last = min(max(last, first + 1), len(ends))
        yield first, last
        first, before = last, int(ends[last - 1])


def nearest_vectors(neighbours: Neighbours, most: int) -> Neighbours:
    """Return the nearest vectors of each query vector, from the results of several segments.

    The result is ordered by query vector and distance.

    Args:
        neighbours: Pairs of a query vector and a row, with the distance of one vector in the row.
        most: Number of vectors to keep for each query vector.
    """
    order = np.lexsort((neighbours.addresses, neighbours.distances, neighbours.queries))
    sizes = np.bincount(neighbours.queries)
    ranks = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    best = order[ranks < most]
    return Neighbours(neighbours.queries[best], neighbours.distances[best], neighbours.addresses[best])


def best_rows(nearest: Neighbours, count: int) -> NDArray[np.uint64]:
    """Return the rows with the best scores, best first. Rows with equal scores are ordered by address.

    A row's score is a sum over the query vectors. Each query vector adds its similarity (1 - distance) to the row's
    nearest vector. If the search did not find any of the row's vectors, the similarity of the last vector found is
    added. XTR (contextual token retrieval) estimates missing similarities in this way.

    Args:
        nearest: Nearest vectors of each query vector, from `nearest_vectors`.
        count: Maximum number of rows.

    Returns:
        The row addresses, uint64, at most `count`.
    """
    rows, places = np.unique(nearest.addresses, return_inverse=True)
    queries, numbers = np.unique(nearest.queries, return_inverse=True)
    similar = 1 - nearest.distances.astype(np.float64)
    floors = np.full(len(queries), np.inf)
    np.minimum.at(floors, numbers, similar)
    best = np.repeat(floors[:, None], len(rows), axis=1)
    np.maximum.at(best, (numbers, places), similar)
    scores = best.sum(axis=0)
    order = np.lexsort((rows, -scores))[:count]
    addresses: NDArray[np.uint64] = rows[order]
    return addresses
