"""Queries drawn from the rows of a segment, and their true neighbours among these rows, or among a part of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import (
    LEAST_SAMPLE_BYTES,
    MOST_SAMPLE_BYTES,
    REMOTE_SAMPLE_BYTES,
    REMOTE_SAMPLE_RUNS,
    SAMPLE_NEIGHBOURS,
    SAMPLE_PART,
    SAMPLE_QUERIES,
    SAMPLE_RUN_ROWS,
)
from lance_duck.scan.nearest.best import NOWHERE, Neighbours, TopK
from lance_duck.scan.nearest.blocks import block_of
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.covered import Covered
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.nearest.settings.runs import Numbering, sample_runs
from lance_duck.scan.projection import project
from lance_duck.scan.table_scan import TableScan
from lance_duck.store import local_path

Addresses = NDArray[np.uint64]
Places = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sample:
    """Queries and their neighbours.

    Attributes:
        queries: (queries, dim), float32 or uint8.
        own: int64 (queries,): position of the row that a query is; it is no neighbour of its own.
        allowed: For each position whether it may be found; None: all may.
        num_allowed: Positions that may be found.
        positions: int64 (queries, n): rows that may be among the nearest; -1: none, or not in the segment.
        are_near: bool (queries, n): of these, those that no row outdoes, ties included.
        count: True neighbours of each query: as many of those that are near, or all where they are fewer.
        k: Neighbours in all of the rows that these stand for.
    """

    queries: NDArray[Any]
    own: Places
    allowed: Mask | None
    num_allowed: int
    positions: Places
    are_near: Mask
    count: Places
    k: int

    def first(self, count: int) -> Sample:
        """Return the sample with its first queries alone."""
        names = ("queries", "own", "positions", "are_near", "count")
        return replace(self, **{name: getattr(self, name)[:count] for name in names})

    def recall(self, found: Mask) -> tuple[float, float]:
        """Return the recall, and its standard error, of searches that found some of the positions."""
        shares = np.minimum((found & self.are_near).sum(axis=1), self.count) / self.count
        return float(shares.mean()), float(shares.std() / math.sqrt(len(shares)))


def draw(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    index: VectorIndex,
    rows: Covered,
    k: int,
    share: float,
) -> Sample | None:
    """Draw queries, and find their neighbours; the same ones each time. None: no row can be a query.

    Where the vectors are more than a part that costs allow, the neighbours are those in runs of rows drawn by chance,
    and stand for more neighbours among all rows, which lie farther away: settings are rather too good than too bad.
    """
    rng = np.random.default_rng(segment.uuid.int)
    find = _in_place if local_path(table.snapshot.uri) is not None else _read_once
    allowed = rows.lives if share == 1 else rows.lives & _by_chance(rows.addresses, share)
    queries, own, part, near = find(table, column, segment, index.metric, rows, k, share, rng)
    if not len(own):
        return None
    count = num_neighbours(k, part)
    addresses, distances = _matrix(near, rows.addresses[own], len(queries), 2 * count + 1)
    counts = np.minimum((addresses != NOWHERE).sum(axis=1), count)
    has_any = np.flatnonzero(counts)
    if not len(has_any):
        return None
    addresses, distances, counts = addresses[has_any], distances[has_any], counts[has_any]
    last = np.take_along_axis(distances, counts[:, None] - 1, axis=1)
    positions = _positions(rows.addresses, allowed, addresses)
    num_allowed = int(np.count_nonzero(allowed))
    is_all = num_allowed == len(allowed)
    allowed.flags.writeable = False
    return Sample(
        np.ascontiguousarray(queries[has_any]),
        own[has_any],
        None if is_all else allowed,
        num_allowed,
        positions,
        (distances <= last) & (addresses != NOWHERE),
        counts,
        max(k, math.ceil(count / part)),
    )


def num_neighbours(k: int, part: float) -> int:
    """Return how many neighbours in a part of the rows stand for k in all of them."""
    return min(max(math.ceil(k * part), 1), k)


def _num_queries(count: int) -> int:
    """Return how many queries are drawn that have so many neighbours each."""
    return min(max(SAMPLE_NEIGHBOURS // count, SAMPLE_QUERIES[0]), SAMPLE_QUERIES[1])


def _in_place(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    metric: str,
    rows: Covered,
    k: int,
    share: float,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], Places, float, Neighbours]:
    """Return queries, their positions, the part of the rows that was compared with them where it lies, and the nearest.

    Queries are rows by chance; the rows are all, or many short runs.
    """
    numbering = Numbering.of(table.snapshot, segment)
    width = share * column.dim * column.dtype.itemsize
    part, some = 1.0, None
    most = min(max(numbering.total * width / SAMPLE_PART, LEAST_SAMPLE_BYTES), MOST_SAMPLE_BYTES)
    if numbering.total * width > most:
        numbers = sample_runs(numbering.total, max(int(most / width) // SAMPLE_RUN_ROWS, 1), SAMPLE_RUN_ROWS, rng)
        part, some = len(numbers) / numbering.total, numbering.addresses(numbers)
    if share < 1:
        every = numbering.addresses(np.arange(numbering.total)) if some is None else some
        some = every[_by_chance(every, share)]
    count = num_neighbours(k, part)
    queries, own = _queries(table, column, metric, rows, _num_queries(count), rng)
    question = Question(metric, np.ascontiguousarray(queries, column.dtype), 2 * count + 2)
    fragments = [table.snapshot.fragment(i) for i in segment.fragments.tolist()]
    named = None if some is None else RowSet.of(some)
    return queries, own, part, Exact(table.snapshot, table.columns, column).search(fragments, named, question)


def _read_once(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    metric: str,
    rows: Covered,
    k: int,
    share: float,
    rng: np.random.Generator,
) -> tuple[NDArray[Any], Places, float, Neighbours]:
    """Return the same of rows that are read by requests: all in one round, of few long runs, and of short ones.

    Rows of the short runs are the queries. They are not compared with each other: neighbours in a table may be
    neighbours in space, too, more than rows by chance are.
    """
    numbering = Numbering.of(table.snapshot, segment)
    total = numbering.total
    length = -(-REMOTE_SAMPLE_BYTES // (column.dim * column.dtype.itemsize * REMOTE_SAMPLE_RUNS))
    compared = sample_runs(total, REMOTE_SAMPLE_RUNS, length, rng)
    part = len(compared) / total
    count = num_neighbours(k, part)
    asked = sample_runs(total, REMOTE_SAMPLE_RUNS, -(-_num_queries(count) // REMOTE_SAMPLE_RUNS), rng)
    compared = compared if part == 1 else np.setdiff1d(compared, asked)
    numbers = np.union1d(asked, compared)
    wanted = numbering.addresses(numbers)
    array, found = Exact(table.snapshot, table.columns, column).vectors(RowSet.of(wanted))
    numbers = numbers[np.isin(wanted, found)]  # deleted rows are left out
    vectors = vectors_of(array, metric=metric)
    positions = _positions(rows.addresses, rows.lives, found)
    places = np.flatnonzero(vectors.usable & (positions >= 0) & np.isin(numbers, asked))
    queries = vectors.values[places]
    mine = np.flatnonzero(np.isin(numbers, compared) & (True if share == 1 else _by_chance(found, share)))
    best = TopK(len(queries), 2 * count + 2)
    if len(queries) and len(mine):
        question = Question(metric, np.ascontiguousarray(queries, column.dtype), best.k)
        best.add(question.near(block_of(array, column), mine, found[mine], best.limits))
    return queries, positions[places], part, best.neighbours()


def _queries(
    table: TableScan, column: VectorColumn, metric: str, rows: Covered, wanted: int, rng: np.random.Generator
) -> tuple[NDArray[Any], Places]:
    """Return vectors of rows that live, and their positions."""
    drawn = np.unique(rng.integers(0, len(rows.lives), 4 * wanted))
    living = drawn[rows.lives[drawn]]
    if len(living) < wanted:
        living = np.flatnonzero(rows.lives)
    own = rng.permutation(living)[:wanted]
    if not len(own):
        return np.empty((0, column.dim), np.float32), own
    taken = table.taker.by_address(rows.addresses[own], project(table.snapshot.schema, [column.path]))
    vectors = vectors_of(taken.column(0), metric=metric)
    return vectors.values[vectors.usable], own[vectors.usable]


def _matrix(near: Neighbours, own: Addresses, count: int, width: int) -> tuple[Addresses, NDArray[np.float32]]:
    """Return addresses and distances (queries, width), nearest first, without the rows that the queries are."""
    others = near.where(near.addresses != own[near.queries])
    starts = np.searchsorted(others.queries, np.arange(count))
    places = np.arange(len(others)) - starts[others.queries]
    kept = places < width
    addresses = np.full((count, width), NOWHERE, np.uint64)
    distances = np.full((count, width), np.inf, np.float32)
    addresses[others.queries[kept], places[kept]] = others.addresses[kept]
    distances[others.queries[kept], places[kept]] = others.distances[kept]
    return addresses, distances


def _positions(addresses: Addresses, allowed: Mask, wanted: Addresses) -> Places:
    """Return the positions of rows among those that may be found; -1 where there is none."""
    names = np.unique(wanted)
    places = np.minimum(np.searchsorted(names, addresses), len(names) - 1)
    hits = np.flatnonzero((names[places] == addresses) & allowed)
    positions = np.full(len(names), -1, np.int64)
    positions[places[hits]] = hits
    return positions[np.searchsorted(names, wanted)]


def _by_chance(addresses: Addresses, share: float) -> Mask:
    """Choose rows by chance, by their addresses: the same ones each time."""
    bits = (addresses + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    bits ^= bits >> np.uint64(32)
    bits *= np.uint64(0xD6E8FEB86659FD93)
    bits ^= bits >> np.uint64(32)
    chosen: Mask = bits < np.uint64(int(share * 2**64))
    return chosen
