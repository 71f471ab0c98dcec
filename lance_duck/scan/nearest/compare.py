"""Compares blocks of vectors with queries, to find near rows.

Few queries are compared one by one, at the speed of memory. For many queries, a matrix product with a known maximum
error first selects the rows that may be among the nearest. The distances of these rows are then computed one by one, so
that they do not depend on the method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.scan.costs import (
    LONE_PRODUCT,
    PRODUCT_NEIGHBOURS,
    PRODUCT_QUERIES,
    PRODUCT_QUERIES_AT_ONCE,
    PRODUCT_ROWS,
)
from lance_duck.scan.nearest import kernels
from lance_duck.scan.nearest.best import Neighbours, joined_neighbours, smallest
from lance_duck.scan.nearest.blocks import Block

Addresses = NDArray[np.uint64]
Rows = NDArray[np.int64]

KERNELS: Final[dict[str, Callable[..., None]]] = {
    "l2": kernels.l2,
    "dot": kernels.dot,
    "cosine": kernels.cosine,
    "hamming": kernels.hamming,
}

_LARGEST: Final = float(np.finfo(np.float32).max)
_NONE: Final = readonly(np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Question:
    """A search of blocks of vectors.

    Attributes:
        metric: One of `index.vector.search.contract.METRICS`.
        queries: (n, dim), of the dtype used for distances.
        k: Number of neighbours per query.
        lower: Minimum distance of a neighbour (inclusive), or None.
        upper: Maximum distance of a neighbour (exclusive), or None.
    """

    metric: str
    queries: NDArray[Any]
    k: int
    lower: float | None = None
    upper: float | None = None

    def near(self, block: Block, rows: Rows | None, addresses: Addresses, limits: NDArray[np.float32]) -> Neighbours:
        """Return the rows that may be among the k nearest of each query.

        Args:
            block: Vectors.
            rows: int64 (m,), the indices of the vectors to compare. None compares all vectors.
            addresses: uint64 (m,), the addresses of these rows.
            limits: float32 (queries,), the distance above which a row is not among the nearest.
        """
        many = len(self.queries) >= PRODUCT_QUERIES and self.metric != "hamming"
        if many and self.lower is None and self.k <= PRODUCT_NEIGHBOURS and not self._has_extremes:
            return self._by_product(block, rows, addresses, limits)
        pieces = [self._one(block, rows, addresses, i, float(limits[i])) for i in range(len(self.queries))]
        return pieces[0] if len(pieces) == 1 else joined_neighbours(pieces)

    def distances(self, block: Block, rows: Rows, which: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the distance of each pair of a row and a query. It is NaN if the vector does not have a distance."""
        out = self.distances_at(block.values.reshape(-1), rows * block.values.shape[1], which)
        if block.valid is not None:
            out[~block.valid[rows]] = np.nan
        return out

    def distances_at(self, numbers: NDArray[Any], starts: Rows, which: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the distance of each pair of a vector and a query, like `distances`.

        Args:
            numbers: Array that contains the vectors. It is not changed.
            starts: int64 (pairs,), the index in `numbers` of each pair's vector. It must be in range.
            which: int64 (pairs,), the index of each pair's query.
        """
        out = np.empty(len(starts), np.float32)
        if len(starts):
            KERNELS[self.metric](numbers, readonly(starts), self._queries, readonly(which), out)
        return self._bounded(out)

    def _one(self, block: Block, rows: Rows | None, addresses: Addresses, query: int, limit: float) -> Neighbours:
        out = np.empty(len(addresses), np.float32)
        starts = _NONE if rows is None else readonly(rows * block.values.shape[1])
        if len(out):
            numbers = block.values.reshape(-1)
            KERNELS[self.metric](numbers, starts, self._queries, readonly(np.array([query])), out)
        if block.valid is not None:
            out[~(block.valid if rows is None else block.valid[rows])] = np.nan
        places = smallest(self._bounded(out), self.k, limit)
        return Neighbours(np.full(len(places), query, np.int64), out[places], addresses[places])

    def _bounded(self, out: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.lower is not None:
            out[out < self.lower] = np.nan
        if self.upper is not None:
            out[out >= self.upper] = np.nan
        return out

    def _by_product(
        self, block: Block, rows: Rows | None, addresses: Addresses, limits: NDArray[np.float32]
    ) -> Neighbours:
        bounds: NDArray[np.float64] = limits.astype(np.float64)
        positions: list[NDArray[np.int64]] = []
        which: list[NDArray[np.int64]] = []
        for first in range(0, len(addresses), PRODUCT_ROWS):
            places = (
                np.arange(first, min(first + PRODUCT_ROWS, len(addresses)))
                if rows is None
                else rows[first : first + PRODUCT_ROWS]
            )
            values = block.values[first : first + PRODUCT_ROWS] if rows is None else block.values[places]
            with np.errstate(all="ignore"):
                squares = np.einsum("ij,ij->i", values, values)
            odd = _extremes(values, squares)
            for begin in range(0, len(self.queries), PRODUCT_QUERIES_AT_ONCE):
                span = slice(begin, begin + PRODUCT_QUERIES_AT_ONCE)
                scores, floor = self._scores(values, squares, span)
                if np.isinf(bounds[span]).any() and len(values) >= self.k:
                    bounds[span] = np.minimum(bounds[span], self._first_limits(block, places, scores, begin))
                with np.errstate(all="ignore"):  # a zero query gives NaN, so that no row passes
                    least = floor(np.maximum(bounds[span], -_LARGEST)).astype(scores.dtype)
                is_near = scores >= least
                is_near[odd] = True  # their scores are invalid
                near = np.flatnonzero(is_near)
                row, query = np.divmod(near, scores.shape[1])
                positions.append(row + first)
                which.append(query + begin)
        at, query_numbers = np.concatenate(positions or [_NONE]), np.concatenate(which or [_NONE])
        result = Neighbours(
            query_numbers, self.distances(block, at if rows is None else rows[at], query_numbers), addresses[at]
        )
        return result.where(~np.isnan(result.distances))

    def _first_limits(self, block: Block, places: Rows, scores: NDArray[Any], begin: int) -> NDArray[np.float64]:
        """Return, for each query, the largest distance among the k rows with the best scores."""
        valid_scores = np.ascontiguousarray(np.where(np.isnan(scores), -np.inf, scores).T)
        top = np.argpartition(valid_scores, len(places) - self.k, axis=1)[:, len(places) - self.k :]
        which = np.repeat(np.arange(len(valid_scores)) + begin, self.k)
        distances = self.distances(block, places[top.ravel()], which).astype(np.float64)
        distances[np.isnan(distances)] = np.inf
        furthest: NDArray[np.float64] = distances.reshape(-1, self.k).max(axis=1)
        return furthest

    def _scores(
        self, values: NDArray[Any], squared: NDArray[Any], span: slice
    ) -> tuple[NDArray[Any], Callable[[NDArray[np.float64]], NDArray[np.float64]]]:
        """Return the scores (rows, queries), and a function that converts maximum distances to minimum scores.

        Both allow for the maximum error of the sums.
        """
        with np.errstate(all="ignore"):
            scores = _products(values, np.ascontiguousarray(self.queries[span].T))
            squares = squared[:, None]
            query_squares, off = self._squares[span].astype(np.float64), self._error
            if self.metric == "l2":  # |x|² + |q|² - 2 x·q - off (|x|² + |q|²) <= limit
                scores -= squares * ((1 - off) / 2)
                return scores, lambda limits: ((1 - off) * query_squares - limits) / 2 - off * query_squares
            if self.metric == "dot":  # 1 - x·q - off (1 + (|x|² + |q|²) / 2) <= limit
                scores += squares * (off / 2)
                return scores, lambda limits: 1 - off - limits - query_squares * off / 2 - off * np.abs(limits)
            scores /= np.sqrt(squares)  # 1 - x·q / |x| |q| - 4 off <= limit
            return scores, lambda limits: (1 - limits - 4 * off) * np.sqrt(query_squares)

    @cached_property
    def _queries(self) -> NDArray[Any]:
        return readonly(self.queries)

    @cached_property
    def _squares(self) -> NDArray[Any]:
        with np.errstate(all="ignore"):
            squares: NDArray[Any] = np.einsum("ij,ij->i", self.queries, self.queries)
        return squares

    @cached_property
    def _has_extremes(self) -> bool:
        return len(_extremes(self.queries, self._squares)) > 0

    @cached_property
    def _error(self) -> float:
        """Maximum relative difference between a sum in a matrix product and the same sum in a kernel."""
        unit = max(float(np.finfo(self.queries.dtype).eps), 2.0**-24)
        return 4.0 * (int(self.queries.shape[1]) + 8) * unit


def _extremes(vectors: NDArray[Any], squares: NDArray[Any]) -> Rows:
    """Return the indices of vectors that are too long or too short for precise products or distances.

    Because distances are float32, their rounding exceeds the error bound for short vectors. The result does not contain
    zero vectors or vectors with a NaN.
    """
    about, single = np.finfo(vectors.dtype), np.finfo(np.float32)
    least = max(float(about.tiny / about.eps), float(single.tiny / single.eps))
    odd = np.flatnonzero(~((squares > least) & (squares < about.max * about.eps)))
    mine = vectors[odd]
    extremes: Rows = odd[~np.isnan(mine).any(axis=1) & mine.any(axis=1)]
    return extremes


def _products(values: NDArray[Any], queries: NDArray[Any]) -> NDArray[Any]:
    """Return the inner products (rows, queries) of vectors (rows, dim) with queries (dim, queries)."""
    count, (dim, num_queries) = len(values), queries.shape
    step = max(1, LONE_PRODUCT // (dim * num_queries))
    whole = count // step * step
    out = np.empty((count, num_queries), values.dtype)
    np.matmul(values[:whole].reshape(-1, step, dim), queries, out=out[:whole].reshape(-1, step, num_queries))
    np.matmul(values[whole:], queries, out=out[whole:])
    return out
