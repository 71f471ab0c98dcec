"""Distances between rows and a query that have several vectors each: sums of least distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.multivectors import vectors_in
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.scan.costs import BLOCK_BYTES


def row_distances(metric: str, query: NDArray[Any], array: pa.Array) -> NDArray[np.float32]:
    """Return the distance of each row, float32 (rows,); NaN for rows without a vector that can be a neighbour.

    Args:
        metric: As `metric_of` returns it.
        query: (vectors, dim), float32; uint8 for hamming.
        array: Rows: lists of vectors of this dim.
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
    """Yield ranges of at least one row whose vectors are compared at a time.

    Args:
        ends: Where the vectors of each row end.
        width: Bytes that a vector takes during the comparison.
    """
    first = before = 0
    while first < len(ends):
        last = int(np.searchsorted(ends, before + BLOCK_BYTES // width, "right"))
        last = min(max(last, first + 1), len(ends))
        yield first, last
        first, before = last, int(ends[last - 1])
