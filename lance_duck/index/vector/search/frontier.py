"""Selects the partitions to search next for queries whose filter is tied to the vectors.

Let x be a vector of a partition with centroid c. Its squared distance from a query q is
|q - c|² + |x - c|² + 2 (q - c)·(c - x). The second term varies little between the vectors of an index. The third term
is normally distributed around 0, and its deviation grows with |q - c|. `Spread` measures both terms with sampled
vectors as queries. Three numbers then determine the expected number of neighbours in a partition: the count of its
allowed vectors, the distance of its centroid, and the distance of the k-th neighbour so far. The partitions with the
most expected neighbours are searched next. Each step at most doubles the number of searched partitions. The search ends
when the remaining partitions are expected to contain only the tolerated share of missed neighbours. Only ratios between
partitions matter, so a model error that is the same for all partitions does not have an effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import SPREAD_PARTITIONS, SPREAD_VECTORS
from lance_duck.index.vector.layout import Partitions
from lance_duck.index.vector.search.contract import Probe

Int64s = NDArray[np.int64]
Numbers = NDArray[np.float32]

_STEPS: Final = 256  # steps of the normal distribution per standard deviation
_WIDEST: Final = 12


@dataclass(frozen=True)
class Spread:
    """The spread of a segment's vectors around their centroids, in faiss's distance.

    faiss's distance is the squared Euclidean distance, or the negated inner product.

    Attributes:
        radius: Mean of |x - c|², by which a vector is farther from a query than its centroid. 0 for inner products.
        radius_deviation: Standard deviation of |x - c|². 0 for inner products.
        deviation: Standard deviation of the remaining difference, divided by the distance between query and centroid,
            or for inner products, by the length of the query.
    """

    radius: float
    radius_deviation: float
    deviation: float

    @classmethod
    def of(cls, vectors: Numbers, centroids: Numbers, *, is_dot: bool) -> Spread:
        """Measure the spread on a sample of vectors. Each vector is compared as a query with all others.

        Args:
            vectors: float32 (n, dim), drawn from all partitions.
            centroids: float32 (n, dim), the centroid of each vector's partition.
            is_dot: Whether distances are inner products.
        """
        wide, centres = vectors.astype(np.float64), centroids.astype(np.float64)
        others = ~np.eye(len(wide), dtype=np.bool_)
        if is_dot:
            lengths = np.maximum(np.linalg.norm(wide, axis=1), 1e-30)
            rest = ((wide @ (centres - wide).T) / lengths[:, None])[others]
            return cls(0.0, 0.0, float(np.sqrt((rest**2).mean())) if len(rest) else 0.0)
        radii = ((wide - centres) ** 2).sum(axis=1)
        far = np.maximum(_squares(wide, centres), 1e-30)
        rest = ((_squares(wide, wide) - far - radii) / np.sqrt(far))[others]
        deviation = float(np.sqrt((rest**2).mean())) if len(rest) else 0.0
        return cls(float(radii.mean()), float(radii.std()), deviation)


class Frontier:
    """The partitions that are still to be searched for each query. Not safe to use from several threads.

    Args:
        distances: float32 (queries, partitions), faiss's distance of each centroid. Inner products are negated.
        lengths: float32 (queries,), lengths of the queries for inner products. None for Euclidean distances.
        counts: int64 (partitions,), number of allowed vectors per partition.
        spread: Spread of the segment's vectors.
        k: Number of neighbours per query.
        probe: Extent of the search.
    """

    def __init__(
        self, distances: Numbers, lengths: Numbers | None, counts: Int64s, spread: Spread, k: int, probe: Probe
    ) -> None:
        self._order = np.argsort(distances, axis=1, kind="stable")
        nearest_first = np.take_along_axis(distances, self._order, axis=1)
        scale = np.abs(nearest_first) if lengths is None else lengths[:, None] ** 2
        with np.errstate(over="ignore"):
            deviations = np.sqrt(np.float32(spread.deviation**2) * scale + np.float32(spread.radius_deviation**2))
        self._expected = nearest_first + np.float32(spread.radius)
        self._steps = np.float32(_STEPS) / np.maximum(deviations, np.float32(1e-30))
        self._counts = counts[self._order].astype(np.float32)
        if probe.max_nprobes is not None:
            self._counts[:, max(probe.max_nprobes, 1) :] = 0
        self._is_open = self._counts > 0
        self._num_searched = np.zeros(len(distances), np.int64)
        self._k = k
        self._nprobes = max(probe.nprobes, 1)
        self._missed = (1 - probe.recall) / 2  # searches within partitions may miss the other half

    def first(self) -> Int64s:
        """Return the `probe.nprobes` nearest partitions, and further ones until they have k allowed vectors.

        The result is int64 (queries, n), padded with -1.
        """
        inside = np.cumsum(self._counts, axis=1) - self._counts
        is_first = (np.cumsum(self._is_open, axis=1) <= self._nprobes) | (inside < self._k)
        return self._taken(np.broadcast_to(np.arange(is_first.shape[1]), is_first.shape), self._is_open & is_first)

    def further(self, limits: Numbers) -> Int64s:
        """Return the partitions to search next: int64 (queries, n), padded with -1. n is 0 when the search is complete.

        Args:
            limits: float32 (queries,): faiss's distance of the k-th neighbour so far.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.nan_to_num((limits[:, None] - self._expected) * self._steps, copy=False)  # infinite distances
        np.clip(steps, -_WIDEST * _STEPS, _WIDEST * _STEPS, out=steps)
        neighbours = self._counts * _normal()[steps.astype(np.int32) + _WIDEST * _STEPS]
        tolerated = self._missed * neighbours.sum(axis=1)
        neighbours[~self._is_open] = 0
        most_first = np.argsort(np.where(self._is_open, -neighbours, 1), axis=1, kind="stable")
        left = np.take_along_axis(neighbours, most_first, axis=1)[:, ::-1].cumsum(axis=1)[:, ::-1]
        wanted = np.take_along_axis(self._is_open, most_first, axis=1) & (left > tolerated[:, None])
        wanted &= np.arange(wanted.shape[1]) < self._num_searched[:, None]
        return self._taken(most_first, wanted)

    def _taken(self, ranks: Int64s, wanted: NDArray[np.bool_]) -> Int64s:
        """Return the wanted partitions of each query in order, padded with -1, and mark them as searched.

        Args:
            ranks: int64 (queries, n): partitions as ranks, which count the nearer partitions.
            wanted: bool (queries, n), whether each partition is wanted.
        """
        numbers = np.count_nonzero(wanted, axis=1)
        self._num_searched += numbers
        places = np.argsort(~wanted, axis=1, kind="stable")[:, : int(numbers.max(initial=0))]
        taken = np.take_along_axis(ranks, places, axis=1)
        is_wanted = np.take_along_axis(wanted, places, axis=1)
        query, place = np.nonzero(is_wanted)
        self._is_open[query, taken[query, place]] = False
        return np.where(is_wanted, np.take_along_axis(self._order, taken, axis=1), -1)


def faiss_limits(limits: Numbers, metric: str, probe: Probe) -> Numbers:
    """Convert distances of k-th neighbours from Lance's to faiss's, limited to the upper bound of the probe."""
    if probe.upper is not None:
        limits = np.minimum(limits, np.float32(probe.upper))
    return limits - 1 if metric == "dot" else limits * np.float32(2 if metric == "cosine" else 1)


def sampled_places(partitions: Partitions) -> list[tuple[int, int]]:
    """Draw a reproducible sample of vectors for `Spread.of`, as pairs of a partition and a position in it.

    Args:
        partitions: Partitions of a segment that is not empty.
    """
    rng, lengths = np.random.default_rng(0), partitions.lengths
    filled = np.flatnonzero(lengths)
    count = min(len(filled), SPREAD_PARTITIONS)
    drawn = rng.choice(filled, count, replace=False, p=lengths[filled] / lengths[filled].sum())
    return [
        (partition, place)
        for partition in np.sort(drawn).tolist()
        for place in np.unique(rng.integers(0, lengths[partition], SPREAD_VECTORS // count)).tolist()
    ]


def _squares(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared distances (len(a), len(b))."""
    squares: NDArray[np.float64] = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * (a @ b.T)
    return np.maximum(squares, 0)


@lru_cache(1)
def _normal() -> Numbers:
    """Return the normal distribution function at each step from -`_WIDEST` to `_WIDEST`. Computed on first use."""
    steps = range(-_WIDEST * _STEPS, _WIDEST * _STEPS + 1)
    return np.array([0.5 * math.erfc(-step / (_STEPS * math.sqrt(2))) for step in steps], np.float32)
