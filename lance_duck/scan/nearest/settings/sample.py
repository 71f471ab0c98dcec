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
from lance_duck.rows import row_addresses
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.costs import (
    LEAST_SAMPLE_BYTES,
    MOST_SAMPLE_BYTES,
    SAMPLE_NEIGHBOURS,
    SAMPLE_PART,
    SAMPLE_QUERIES,
    SAMPLE_RUN_ROWS,
)
from lance_duck.scan.nearest.best import NOWHERE, Neighbours
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.covered import Covered
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.projection import project
from lance_duck.scan.table_scan import TableScan

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
    sizes = [table.snapshot.physical_rows(table.snapshot.fragment(i)) for i in segment.fragments.tolist()]
    part, runs = _part(segment, np.array(sizes, np.int64), share * column.dim * column.dtype.itemsize, rng)
    count = min(max(math.ceil(k * part), 1), k)
    wanted = min(max(SAMPLE_NEIGHBOURS // count, SAMPLE_QUERIES[0]), SAMPLE_QUERIES[1])
    allowed = rows.lives if share == 1 else rows.lives & _by_chance(rows.addresses, share)
    queries, own = _queries(table, column, index, rows, wanted, rng)
    if not len(own):
        return None
    some = runs
    if share < 1:
        every = row_addresses_of(segment, sizes) if runs is None else runs
        some = every[_by_chance(every, share)]
    near = _exact(table, column, segment, index.metric, queries, some, 2 * count + 2)
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


def row_addresses_of(segment: Segment, sizes: list[int]) -> Addresses:
    """Return the addresses of all rows of the fragments of a segment, deleted ones among them."""
    pieces = [row_addresses(i, np.arange(n)) for i, n in zip(segment.fragments.tolist(), sizes, strict=True)]
    return np.concatenate(pieces)


def _part(segment: Segment, sizes: Places, width: float, rng: np.random.Generator) -> tuple[float, Addresses | None]:
    """Return the part of the rows that is compared, and these rows, in runs; None: all of them.

    Args:
        segment: The segment.
        sizes: Rows of its fragments.
        width: Bytes that are compared of a row, on average.
        rng: Draws.
    """
    total = int(sizes.sum())
    most = min(max(total * width / SAMPLE_PART, LEAST_SAMPLE_BYTES), MOST_SAMPLE_BYTES)
    if total * width <= most:
        return 1.0, None
    num_runs = -(-total // SAMPLE_RUN_ROWS)
    starts = np.unique(rng.integers(0, num_runs, max(int(most / width) // SAMPLE_RUN_ROWS, 1))) * SAMPLE_RUN_ROWS
    numbers = (starts[:, None] + np.arange(SAMPLE_RUN_ROWS)).ravel()
    numbers = numbers[numbers < total]
    ends = np.cumsum(sizes)
    places = np.searchsorted(ends, numbers, "right")
    offsets = numbers - (ends - sizes)[places]
    addresses = (segment.fragments.astype(np.uint64)[places] << np.uint64(32)) | offsets.astype(np.uint64)
    return len(numbers) / total, addresses


def _queries(
    table: TableScan, column: VectorColumn, index: VectorIndex, rows: Covered, wanted: int, rng: np.random.Generator
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
    vectors = vectors_of(taken.column(0), metric=index.metric)
    return vectors.values[vectors.usable], own[vectors.usable]


def _exact(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    metric: str,
    queries: NDArray[Any],
    some: Addresses | None,
    k: int,
) -> Neighbours:
    """Return the nearest of some rows of a segment, None for all, by their vectors."""
    snapshot = table.snapshot
    fragments = [snapshot.fragment(i) for i in segment.fragments.tolist()]
    question = Question(metric, np.ascontiguousarray(queries, column.dtype), k)
    rows = None if some is None else RowSet.of(some)
    return Exact(snapshot, table.columns, column).search(fragments, rows, question)


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
