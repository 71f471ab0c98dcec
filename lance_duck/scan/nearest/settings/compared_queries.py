"""Samples query rows from a segment, and compares them with all or some of its rows.

If the segment has graphs, the query rows are displaced first: see `displaced`. Samples are runs of consecutive rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct, union_of
from lance_duck.index.catalog import Segment
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.search.contract import Probe, VectorIndex
from lance_duck.index.vector.vectors import Vectors, usable_rows, vectors_of
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import (
    LEAST_SAMPLE_BYTES,
    MOST_SAMPLE_BYTES,
    REMOTE_SAMPLE_BYTES,
    REMOTE_SAMPLE_RUNS,
    SAMPLE_NEAREST,
    SAMPLE_NEAREST_PROBES,
    SAMPLE_NEIGHBOURS,
    SAMPLE_PART,
    SAMPLE_QUERIES,
    SAMPLE_RUN_ROWS,
)
from lance_duck.scan.nearest.best import Neighbours, TopK
from lance_duck.scan.nearest.blocks import Block, block_of
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.covered import CoveredRows
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.projection import project
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot

Addresses = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SampledRows:
    """The rows of a segment, from which queries are drawn and with which they are compared.

    Attributes:
        table: The table version from which vectors are read.
        column: The vector column.
        segment: The segment.
        index: The opened segment.
        rows: Addresses of the segment's rows, and whether each row is live.
        k: Number of neighbours per search.
        share: Share of the rows that pass a simulated filter, 0 to 1. The selection is pseudorandom, and always the
            same.
    """

    table: TableScan
    column: VectorColumn
    segment: Segment
    index: VectorIndex
    rows: CoveredRows
    k: int
    share: float

    @property
    def metric(self) -> str:
        """Metric of the index."""
        return self.index.metric

    def allowed(self) -> Mask:
        """Return, for each entry of the segment, whether its row is live and passes the simulated filter."""
        lives = self.rows.lives
        return lives if self.share == 1 else lives & _by_chance(self.rows.addresses, self.share)

    def exact(self) -> Exact:
        """Return the exact search of the column."""
        return Exact(self.table.snapshot, self.table.columns, self.column)

    def question(self, queries: NDArray[Any], count: int) -> Question:
        """Return the exact search for `count` neighbours of each query."""
        return Question(self.metric, np.ascontiguousarray(queries, self.column.dtype), count)


class ComparedQueries(NamedTuple):
    """Queries, and their nearest neighbours among the compared rows.

    Attributes:
        queries: (queries, dim), float32 or uint8.
        own: int64 (queries,), the position of the row from which each query was drawn.
        part: Share of the rows that were compared, 0 to 1, before the simulated filter.
        nearest: Neighbours of each query. They include the query's own row if it was compared.
    """

    queries: NDArray[Any]
    own: Int64s
    part: float
    nearest: Neighbours


def compare_in_place(sampled: SampledRows, rng: np.random.Generator) -> ComparedQueries:
    """Compare random query rows with all rows of a table on a local disk, or with many short runs of rows."""
    numbering = _Numbering.of(sampled.table.snapshot, sampled.segment)
    row_bytes = sampled.share * sampled.column.dim * sampled.column.dtype.itemsize
    limit = min(max(numbering.total * row_bytes / SAMPLE_PART, LEAST_SAMPLE_BYTES), MOST_SAMPLE_BYTES)
    part, addresses = 1.0, None
    if numbering.total * row_bytes > limit:
        num_runs = max(int(limit / row_bytes) // SAMPLE_RUN_ROWS, 1)
        numbers = _sample_runs(numbering.total, num_runs, SAMPLE_RUN_ROWS, rng)
        part, addresses = len(numbers) / numbering.total, numbering.addresses(numbers)
    if sampled.share < 1:
        addresses = numbering.addresses(np.arange(numbering.total)) if addresses is None else addresses
        addresses = addresses[_by_chance(addresses, sampled.share)]
    count = num_neighbours(sampled.k, part)
    queries, own = _draw_queries(sampled, _num_queries(count), rng)
    if sampled.index.shape.has_graphs:
        queries = _displaced_by_index(sampled, queries, own, rng)
    fragments = [sampled.table.snapshot.fragment(i) for i in sampled.segment.fragments.tolist()]
    compared = None if addresses is None else RowSet.of(addresses)
    nearest = sampled.exact().search(fragments, compared, sampled.question(queries, 2 * count + 2))
    return ComparedQueries(queries, own, part, nearest)


def compare_fetched(sampled: SampledRows, rng: np.random.Generator) -> ComparedQueries:
    """Compare rows from an object store. One round of requests fetches long and short runs of rows.

    The rows of the short runs are the queries. They are not compared with each other, because adjacent table rows are
    nearer to each other than random rows.
    """
    column, rows = sampled.column, sampled.rows
    numbering = _Numbering.of(sampled.table.snapshot, sampled.segment)
    total = numbering.total
    run_rows = -(-REMOTE_SAMPLE_BYTES // (column.dim * column.dtype.itemsize * REMOTE_SAMPLE_RUNS))
    long_runs = _sample_runs(total, REMOTE_SAMPLE_RUNS, run_rows, rng)
    part = len(long_runs) / total
    count = num_neighbours(sampled.k, part)
    short_runs = _sample_runs(total, REMOTE_SAMPLE_RUNS, -(-_num_queries(count) // REMOTE_SAMPLE_RUNS), rng)
    long_runs = long_runs if part == 1 else difference_of(long_runs, short_runs)
    numbers = union_of(short_runs, long_runs)
    drawn = numbering.addresses(numbers)
    array, living = sampled.exact().vectors(RowSet.of(drawn))
    numbers = numbers[np.isin(drawn, living)]  # without deleted rows
    vectors = vectors_of(array, metric=sampled.metric)
    positions = positions_of(rows.addresses, rows.lives, living)
    places = np.flatnonzero(vectors.usable & (positions >= 0) & np.isin(numbers, short_runs))
    queries, is_compared, block = vectors.values[places], np.isin(numbers, long_runs), block_of(array, column)
    if sampled.index.shape.has_graphs:
        others = np.flatnonzero(is_compared & vectors.usable)
        near = _nearest(sampled, queries, SAMPLE_NEAREST + 1, block, others, living)
        near = near.where(near.addresses != living[places][near.queries])
        nearest_vectors = vectors.values[np.searchsorted(living, near.addresses)]
        queries = displaced(queries, near.queries, nearest_vectors, sampled.metric, rng)
    compared = np.flatnonzero(is_compared if sampled.share == 1 else is_compared & _by_chance(living, sampled.share))
    nearest = _nearest(sampled, queries, 2 * count + 2, block, compared, living)
    return ComparedQueries(queries, positions[places], part, nearest)


def _nearest(
    sampled: SampledRows, queries: NDArray[Any], count: int, block: Block, places: Int64s, addresses: Addresses
) -> Neighbours:
    """Return the nearest of the selected vectors in a block. `addresses` contains all rows of the block."""
    best = TopK(len(queries), count)
    if len(queries) and len(places):
        best.add(sampled.question(queries, count).near(block, places, addresses[places], best.limits))
    return best.neighbours()


def num_neighbours(k: int, part: float) -> int:
    """Return the number of neighbours in a share of the rows that corresponds to k neighbours in all rows."""
    return min(max(math.ceil(k * part), 1), k)


def positions_of(addresses: Addresses, allowed: Mask, targets: Addresses) -> Int64s:
    """Return the position of each target address in a segment, or -1 if it is missing or not allowed."""
    names = distinct(targets)
    places = np.minimum(np.searchsorted(names, addresses), len(names) - 1)
    hits = np.flatnonzero((names[places] == addresses) & allowed)
    positions = np.full(len(names), -1, np.int64)
    positions[places[hits]] = hits
    return positions[np.searchsorted(names, targets)]


def _num_queries(count: int) -> int:
    """Return the number of queries to draw if each has `count` neighbours."""
    return min(max(SAMPLE_NEIGHBOURS // count, SAMPLE_QUERIES[0]), SAMPLE_QUERIES[1])


def _draw_queries(sampled: SampledRows, count: int, rng: np.random.Generator) -> tuple[NDArray[Any], Int64s]:
    """Return the vectors of at most `count` random live rows, and their positions."""
    column, rows = sampled.column, sampled.rows
    drawn = distinct(rng.integers(0, len(rows.lives), 4 * count))
    living = drawn[rows.lives[drawn]]
    if len(living) < count:
        living = np.flatnonzero(rows.lives)
    own = rng.permutation(living)[:count]
    if not len(own):
        return np.empty((0, column.dim), np.float32), own
    vectors = _vectors_at(sampled, own)
    return vectors.values[vectors.usable], own[vectors.usable]


def _displaced_by_index(
    sampled: SampledRows, queries: NDArray[Any], own: Int64s, rng: np.random.Generator
) -> NDArray[Any]:
    """Displace each query by its distance to the nearest row that the index finds."""
    if not len(own):
        return queries
    lives = sampled.rows.lives
    allowed, probe = None if lives.all() else lives, Probe(SAMPLE_NEAREST_PROBES, SAMPLE_NEAREST_PROBES, is_alone=True)
    hits = sampled.index.search(queries, SAMPLE_NEAREST + 1, allowed, probe).positions
    which, places = np.nonzero((hits >= 0) & (hits != own[:, None]))
    names, at = np.unique(hits[which, places], return_inverse=True)
    vectors = _vectors_at(sampled, names)
    usable = vectors.usable[at]
    return displaced(queries, which[usable], vectors.values[at[usable]], sampled.metric, rng)


def _vectors_at(sampled: SampledRows, positions: Int64s) -> Vectors:
    """Return the vectors of live rows by position in the segment."""
    projection = project(sampled.table.snapshot.schema, [sampled.column.path])
    taken = sampled.table.taker.by_address(sampled.rows.addresses[positions], projection)
    return vectors_of(taken.column(0), metric=sampled.metric)


def _by_chance(addresses: Addresses, share: float) -> Mask:
    """Select a share of rows by a hash of their addresses. The same rows are selected each time."""
    bits = (addresses + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(32)
    in_share: Mask = bits < np.uint64(int(share * 2**64))
    return in_share


def displaced(
    rows: NDArray[Any], which: Int64s, others: NDArray[Any], metric: str, rng: np.random.Generator
) -> NDArray[Any]:
    """Displace each row in a random direction, by the distance to the nearest of some other rows.

    A graph has edges from a row to its neighbours. A walk finds these neighbours more easily than the neighbours of a
    vector that is only similar to the row, as most queries are. On 20,000 uniform vectors of 24 dimensions, a walk with
    20 candidates finds 0.882 of the neighbours for similar vectors, 0.985 for rows, and 0.888 for displaced rows
    (`benchmarks/graph_recall.py --walks`).

    For cosine and dot, the distance between directions is used, because the length of a query does not change the
    order. A row is not displaced if an equal vector exists, if it is not compared with other vectors, or if the result
    would overflow.

    Args:
        rows: float32 (n, dim), usable vectors.
        which: int64 (pairs,), the row of each pair.
        others: float32 (pairs, dim), usable vectors near the row of each pair, except the row itself.
        metric: "l2", "cosine" or "dot".
        rng: Source of randomness.

    Returns:
        The displaced rows, float32 (n, dim).
    """
    wide = rows.astype(np.float64)
    distances = np.full(len(rows), np.inf)
    if metric == "l2":
        np.minimum.at(distances, which, np.linalg.norm(wide[which] - others, axis=1))
    else:
        chords = np.linalg.norm(normalized(rows)[which].astype(np.float64) - normalized(others), axis=1)
        np.minimum.at(distances, which, chords)
        distances *= np.linalg.norm(wide, axis=1)
    distances[~np.isfinite(distances)] = 0
    directions = rng.standard_normal(rows.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        moved = (wide + distances[:, None] * directions).astype(np.float32)
    stays = (distances == 0) | ~usable_rows(moved, metric)
    return np.where(stays[:, None], rows, moved)


@dataclass(frozen=True, eq=False)
class _Numbering:
    """Numbers all rows of a segment's fragments consecutively in table order, including deleted rows.

    Attributes:
        fragments: uint32 (n,), the ids of the fragments.
        ends: int64 (n,), one more than the number of the last row of each fragment.
    """

    fragments: NDArray[np.uint32]
    ends: Int64s

    @classmethod
    def of(cls, snapshot: Snapshot, segment: Segment) -> _Numbering:
        """Return the numbering of a segment's rows."""
        sizes = [snapshot.physical_rows(snapshot.fragment(i)) for i in segment.fragments.tolist()]
        return cls(segment.fragments, np.cumsum(np.array(sizes, np.int64)))

    @property
    def total(self) -> int:
        """Row count of all fragments."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def addresses(self, numbers: Int64s) -> NDArray[np.uint64]:
        """Return the addresses of rows by their numbers."""
        places = np.searchsorted(self.ends, numbers, "right")
        starts = np.concatenate([[0], self.ends[:-1]])
        offsets = (numbers - starts[places]).astype(np.uint64)
        addresses: NDArray[np.uint64] = (self.fragments.astype(np.uint64)[places] << np.uint64(32)) | offsets
        return addresses


def _sample_runs(total: int, count: int, length: int, rng: np.random.Generator) -> Int64s:
    """Return the ascending row numbers of at most `count` runs. If the runs would cover all rows, returns all rows.

    Args:
        total: Number of rows to sample from.
        count: Number of runs to draw.
        length: Number of rows per run.
        rng: Source of randomness.
    """
    slots = -(-total // length)
    starts = np.arange(slots) if slots <= count else distinct(rng.integers(0, slots, count))
    numbers = (starts[:, None] * length + np.arange(length)).ravel()
    return numbers[numbers < total]
