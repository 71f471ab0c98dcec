"""Checks the hits of a segment, and turns them into rows."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.vector.search.contract import Hits
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.nearest.covered import CoveredVectors

USUAL: Final = 1e12
"""If distances are below this value, float32 cannot have overflowed."""

NOTHING: Final = Neighbours(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint64))

_LARGEST: Final = float(np.finfo(np.float32).max)


def hit_rows(hits: Hits, rows: CoveredVectors, segment: Segment, count: int) -> Neighbours | None:
    """Return the rows of search hits, or None if one of the rows is deleted."""
    positions, distances = hits.positions.ravel(), hits.distances.ravel()
    if not len(positions):
        return NOTHING
    count_of_each = hits.positions.shape[1]
    queries = np.zeros(count_of_each, np.int64)  # faster than np.repeat
    if len(hits.positions) > 1:
        queries = np.repeat(np.arange(len(hits.positions)), count_of_each)
    least, most = int(np.minimum.reduce(positions)), int(np.maximum.reduce(positions))
    if most >= count:
        raise CorruptError("position", where=segment, expected=f"< {count}", found=most)
    if least < 0 or math.isnan(np.maximum.reduce(distances)):
        is_hit = (positions >= 0) & ~np.isnan(distances)
        if not is_hit.any():
            return NOTHING
        queries, positions, distances = queries[is_hit], positions[is_hit], distances[is_hit]
    addresses = rows.found(positions)
    return None if addresses is None else Neighbours(queries, distances, addresses)


def least_count(hits: Hits) -> int:
    """Return the number of hits of the query with the fewest hits."""
    return int(((hits.positions >= 0) & ~np.isnan(hits.distances)).sum(axis=1).min())


def is_beyond(hits: Hits, queries: NDArray[np.float32]) -> bool:
    """Return whether distances may overflow float32. An index then drops rows, or ranks them incorrectly."""
    distances = hits.distances.ravel()
    if not len(distances) or (np.minimum.reduce(distances) > -USUAL and np.maximum.reduce(distances) < USUAL):
        return False
    if (~np.isfinite(distances) & (hits.positions.ravel() >= 0)).any():
        return True
    longest = float(np.linalg.norm(queries.astype(np.float64), axis=1).max())
    return longest * longest > _LARGEST
