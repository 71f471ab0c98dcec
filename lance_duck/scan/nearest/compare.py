"""Blocks of vectors against queries: which rows are near, with their distances.

One query, or few, are compared one by one, at the speed of memory. Many are first compared all at once by a product of
matrices, whose distances are off by a known bound at most; what may be among the nearest is then compared as above, so
that a distance never depends on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.kernels.jit import readonly
from lance_duck.scan.nearest import kernels
from lance_duck.scan.nearest.best import Found, smallest
from lance_duck.scan.nearest.blocks import Block

Addresses = NDArray[np.uint64]

KERNELS: Final[dict[str, Callable[..., None]]] = {
    "l2": kernels.l2,
    "dot": kernels.dot,
    "cosine": kernels.cosine,
    "hamming": kernels.hamming,
}

MANY: Final = 8
"""So many queries are worth a product of matrices."""

FEW_NEIGHBOURS: Final = 512
_ROWS: Final = 2048
_QUERIES: Final = 512
_NONE: Final = readonly(np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of every block.

    Attributes:
        metric: One of `index.vector.contract.METRICS`.
        queries: (n, dim), of the dtype that distances are computed in.
        k: Neighbours of each query.
        lower: Distances below are left out.
        upper: Distances from here on are left out.
    """

    metric: str
    queries: NDArray[Any]
    k: int
    lower: float | None = None
    upper: float | None = None

    def near(self, block: Block, addresses: Addresses, limits: NDArray[np.float32]) -> Found:
        """Rows of a block that may be among the k nearest of each query, given distances that are too far."""
        many = len(self.queries) >= MANY and self.metric != "hamming"
        if many and self.lower is None and self.k <= FEW_NEIGHBOURS:
            return self._by_product(block, addresses, limits)
        pieces = [self._one(block, addresses, i, float(limits[i])) for i in range(len(self.queries))]
        return pieces[0] if len(pieces) == 1 else _joined(pieces)

    def distances(self, block: Block, rows: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.float32]:
        """Distances of rows of a block to queries, pair by pair; NaN or infinite where a vector cannot be compared."""
        out = np.empty(len(rows), np.float32)
        if len(rows):
            KERNELS[self.metric](block.values, readonly(rows), self._queries, readonly(which), out)
        if block.there is not None:
            out[~block.there[rows]] = np.nan
        return self._bounded(out)

    def _one(self, block: Block, addresses: Addresses, query: int, limit: float) -> Found:
        out = np.empty(len(block.values), np.float32)
        KERNELS[self.metric](block.values, _NONE, self._queries, readonly(np.array([query])), out)
        if block.there is not None:
            out[~block.there] = np.nan
        places = smallest(self._bounded(out), self.k, limit)
        return Found(np.full(len(places), query, np.int64), out[places], addresses[places])

    def _bounded(self, out: NDArray[np.float32]) -> NDArray[np.float32]:
        if self.lower is not None:
            out[out < self.lower] = np.nan
        if self.upper is not None:
            out[out >= self.upper] = np.nan
        return out

    def _by_product(self, block: Block, addresses: Addresses, limits: NDArray[np.float32]) -> Found:
        limits = limits if self.upper is None else np.minimum(limits, np.float32(self.upper))
        limits = limits.astype(self.queries.dtype)
        rows: list[NDArray[np.int64]] = []
        which: list[NDArray[np.int64]] = []
        for first in range(0, len(block.values), _ROWS):
            values = block.values[first : first + _ROWS]
            there = None if block.there is None else block.there[first : first + _ROWS]
            for begin in range(0, len(self.queries), _QUERIES):
                mine = slice(begin, begin + _QUERIES)
                row, query = self._candidates(values, there, mine, limits[mine])
                rows.append(row + first)
                which.append(query + begin)
        chosen, asked = np.concatenate(rows), np.concatenate(which)
        found = Found(asked, self.distances(block, chosen, asked), addresses[chosen])
        return found.where(np.isfinite(found.distances))

    def _candidates(
        self, values: NDArray[Any], there: NDArray[np.bool_] | None, mine: slice, limits: NDArray[Any]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of row and query whose distance may be up to the limit; limits that are infinite are lowered."""
        with np.errstate(all="ignore"):
            near, off = self._about(values, mine)
            if there is not None:
                near[~there] = np.nan
            if len(values) >= self.k and np.isinf(limits).any():
                most = np.where(np.isnan(near), np.inf, near + off)
                limits[:] = np.minimum(limits, np.partition(most, self.k - 1, axis=0)[self.k - 1])
            row, query = np.nonzero(near - off <= limits)
        return row, query

    def _about(self, values: NDArray[Any], mine: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        """Distances (rows, queries), and how much each may be off."""
        products = values @ self.queries[mine].T
        squares = np.einsum("ij,ij->i", values, values)[:, None]
        own = self._squares[mine]
        if self.metric == "l2":
            return squares + own - 2 * products, self._error * (squares + own)
        lengths = np.sqrt(squares) * np.sqrt(own)
        if self.metric == "cosine":
            return np.maximum(1 - products / lengths, 0), np.full((1, 1), 4 * self._error)
        return 1 - products, self._error * (1 + lengths)

    @cached_property
    def _queries(self) -> NDArray[Any]:
        return readonly(self.queries)

    @cached_property
    def _squares(self) -> NDArray[Any]:
        squares: NDArray[Any] = np.einsum("ij,ij->i", self.queries, self.queries)
        return squares

    @cached_property
    def _error(self) -> float:
        """Relative error of a sum of products, twice over: of this way, and of the other."""
        unit = max(float(np.finfo(self.queries.dtype).eps), 2.0**-24)
        return 4.0 * (int(self.queries.shape[1]) + 8) * unit


def _joined(pieces: list[Found]) -> Found:
    return Found(
        np.concatenate([p.queries for p in pieces]),
        np.concatenate([p.distances for p in pieces]),
        np.concatenate([p.addresses for p in pieces]),
    )
