"""Draws queries from the rows of a segment, and finds their true neighbours among all or some of these rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.scan.nearest.best import NOWHERE, Neighbours
from lance_duck.scan.nearest.covered import CoveredRows
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.nearest.settings.compared_queries import (
    Addresses,
    Int64s,
    Mask,
    SampledRows,
    compare_fetched,
    compare_in_place,
    num_neighbours,
    positions_of,
)
from lance_duck.scan.table_scan import TableScan
from lance_duck.store import local_path


@dataclass(frozen=True, eq=False)
class Sample:
    """Queries and their neighbours.

    Attributes:
        queries: (queries, dim), float32 or uint8.
        own: int64 (queries,), the position of the row from which each query was drawn. The row is not counted as a
            neighbour of this query.
        allowed: bool (positions,), whether the row may be found. None if all rows may be found.
        num_allowed: Number of rows that may be found.
        positions: int64 (queries, n), the positions of candidate rows. Empty slots and rows outside the segment are -1.
        are_near: bool (queries, n), whether the candidate is a true neighbour, including ties.
        count: int64 (queries,), the number of true neighbours of each query. Ties are counted once.
        k: Number of neighbours in the whole segment that the neighbours in the sample represent.
    """

    queries: NDArray[Any]
    own: Int64s
    allowed: Mask | None
    num_allowed: int
    positions: Int64s
    are_near: Mask
    count: Int64s
    k: int

    def first(self, count: int) -> Sample:
        """Return the sample with its first `count` queries only."""
        names = ("queries", "own", "positions", "are_near", "count")
        return replace(self, **{name: getattr(self, name)[:count] for name in names})

    def recall(self, hits: Mask) -> tuple[float, float]:
        """Return the recall of searches and its standard error. `hits` marks the positions that they found."""
        shares = np.minimum((hits & self.are_near).sum(axis=1), self.count) / self.count
        return float(shares.mean()), float(shares.std() / math.sqrt(len(shares)))


def draw(
    table: TableScan,
    column: VectorColumn,
    segment: Segment,
    index: VectorIndex,
    rows: CoveredRows,
    k: int,
    share: float,
) -> Sample | None:
    """Draw queries reproducibly, and find their true neighbours. Returns None if no row is usable as a query.

    If there are too many vectors to compare, only random runs of rows are searched. A neighbour found there stands for
    several neighbours among all rows, and most of these are closer. The settings that are chosen therefore tend to
    exceed the requested recall.
    """
    sampled = SampledRows(table, column, segment, index, rows, k, share)
    compare = compare_in_place if local_path(table.snapshot.uri) is not None else compare_fetched
    queries, own, part, nearest = compare(sampled, np.random.default_rng(segment.uuid.int))
    if not len(own):
        return None
    limit = num_neighbours(k, part)
    addresses, distances = _matrix(nearest, rows.addresses[own], len(queries), 2 * limit + 1)
    counts = np.minimum((addresses != NOWHERE).sum(axis=1), limit)
    has_any = np.flatnonzero(counts)
    if not len(has_any):
        return None
    addresses, distances, counts = addresses[has_any], distances[has_any], counts[has_any]
    last = np.take_along_axis(distances, counts[:, None] - 1, axis=1)
    allowed = sampled.allowed()
    num_allowed = int(np.count_nonzero(allowed))
    allowed.flags.writeable = False
    return Sample(
        np.ascontiguousarray(queries[has_any]),
        own[has_any],
        None if num_allowed == len(allowed) else allowed,
        num_allowed,
        positions_of(rows.addresses, allowed, addresses),
        (distances <= last) & (addresses != NOWHERE),
        counts,
        max(k, math.ceil(limit / part)),
    )


def _matrix(near: Neighbours, own: Addresses, count: int, width: int) -> tuple[Addresses, NDArray[np.float32]]:
    """Return addresses and distances (queries, width), nearest first, without the queries' own rows."""
    others = near.where(near.addresses != own[near.queries])
    starts = np.searchsorted(others.queries, np.arange(count))
    places = np.arange(len(others)) - starts[others.queries]
    fits = places < width
    addresses = np.full((count, width), NOWHERE, np.uint64)
    distances = np.full((count, width), np.inf, np.float32)
    addresses[others.queries[fits], places[fits]] = others.addresses[fits]
    distances[others.queries[fits], places[fits]] = others.distances[fits]
    return addresses, distances
