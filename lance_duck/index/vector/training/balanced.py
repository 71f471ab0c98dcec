"""Trains partition centroids with a k-means that also moves redundant centroids to clusters that need more.

Plain k-means stays near its random start: some centroids share one cluster, and others cover many clusters. The mean of
many clusters is near all queries, so nearly every search visits its partition, which is also large. This module
therefore alternates rounds of k-means with exchanges. In an exchange, a redundant centroid is removed, and its rows
move to their next nearest centroids. In return, a partition whose halves are far apart gets two centroids. An exchange
is made if it lowers the sum of squared distances plus a price for uneven sizes, `EVENNESS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import EVENNESS, SETTLED_SAMPLE
from lance_duck.index.vector.library import faiss
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.halves import WORK_ROWS, halve_partitions

Vectors = NDArray[np.float32]

_FIRST: Final = 0.3  # share of plain rounds at the start, on a part of the sample
_LAST: Final = 0.25  # share of plain rounds at the end, on the whole sample, after the exchanges


@dataclass(frozen=True)
class Halves:
    """Partitions and the halves into which they can be split.

    Attributes:
        middles: float32 (partitions, dim), means of the partitions; NaN for empty partitions.
        means: float32 (partitions, 2, dim), means of the halves; undefined if a partition cannot be split.
        gains: float64 (partitions,), decrease in the sum of squared distances; 0 if a partition cannot be split.
        pairs: int64 (partitions,), product of the halves' sizes; 0 if a partition cannot be split.
    """

    middles: Vectors
    means: Vectors
    gains: NDArray[np.float64]
    pairs: NDArray[np.int64]


def balanced_clusters(sample: Vectors, count: int, rounds: int, seed: int) -> Vectors:
    """Train the centroids of a sample, float32 (count, dim), by Euclidean distance.

    Args:
        sample: float32 (n, dim), with n >= `count`. Squared distances must be finite.
        count: Number of centroids.
        rounds: Maximum number of training rounds.
        seed: Seed of random choices.
    """
    part = sample[:: max(len(sample) // (SETTLED_SAMPLE * count), 1)]
    part = np.ascontiguousarray(part)
    first, last = max(int(_FIRST * rounds), 1), int(_LAST * rounds)
    centroids = plain_rounds(part, None, count, first, seed)
    for _ in range(rounds - first - last):
        centroids, moved = exchanged(part, centroids)
        if not moved:
            break
    return plain_rounds(sample, centroids, count, last, seed) if last else centroids


def plain_rounds(sample: Vectors, centroids: Vectors | None, count: int, rounds: int, seed: int) -> Vectors:
    """Return the centroids after rounds of plain k-means, which starts from `centroids`, or from random vectors."""
    clustering: Any = faiss.Clustering(sample.shape[1], count)
    clustering.niter, clustering.seed = rounds, seed
    clustering.min_points_per_centroid, clustering.max_points_per_centroid = 1, len(sample)
    if centroids is not None:
        faiss.copy_array_to_vector(np.ascontiguousarray(centroids).reshape(-1), clustering.centroids)
    clustering.train(sample, faiss.IndexFlatL2(sample.shape[1]))
    result: Vectors = faiss.vector_to_array(clustering.centroids).reshape(count, -1)
    return result


def exchanged(sample: Vectors, centroids: Vectors) -> tuple[Vectors, int]:
    """Return the centroids after a round of exchanges, and the number of exchanges."""
    count = len(centroids)
    if count < 2:
        return centroids, 0
    index: Any = faiss.IndexFlatL2(sample.shape[1])
    index.add(np.ascontiguousarray(centroids))
    distances, nearest = index.search(sample, 2)
    own, next_ = nearest[:, 0], nearest[:, 1]
    order, sizes = np.argsort(own, kind="stable"), np.bincount(own, minlength=count)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    price = EVENNESS * float(np.maximum(distances[:, 0], 0).mean(dtype=np.float64)) * count / len(sample)
    missed = distances[:, 1] - distances[:, 0] + 2 * price * sizes[next_]
    losses = np.bincount(own, missed, minlength=count).astype(np.float64)
    halves = halved(sample, order, starts)
    result = np.where(sizes[:, None] > 0, halves.middles, centroids)
    pairs = _pairs(halves.gains + 2 * price * halves.pairs, losses, np.split(next_[order], starts[1:-1]))
    for crowded, spare in pairs:
        result[crowded], result[spare] = halves.means[crowded]
    return result, len(pairs)


def halved(vectors: Vectors, order: NDArray[np.int64], starts: NDArray[np.int64]) -> Halves:
    """Split each partition into halves, by k-means with two centroids, which start on its longest axis.

    Args:
        vectors: float32 (n, dim). Squared distances must be finite.
        order: int64 (n,), rows sorted by partition.
        starts: int64 (partitions + 1,), start of each partition's rows in `order`, followed by n.
    """
    count, dim, largest = len(starts) - 1, vectors.shape[1], int(np.diff(starts).max(initial=0))
    middles, means = np.full((count, dim), np.nan, np.float32), np.empty((count, 2, dim), np.float32)
    gains, pairs = np.empty(count), np.empty(count, np.int64)
    inside, sides, work = np.empty((largest, dim), np.float32), np.empty(largest, np.bool_), np.empty((WORK_ROWS, dim))
    halve_partitions(
        readonly(vectors), readonly(order), readonly(starts), inside, sides, work, middles, means, gains, pairs
    )
    return Halves(middles, means, gains, pairs)


def _pairs(
    gains: NDArray[np.float64], losses: NDArray[np.float64], heirs: list[NDArray[np.int64]]
) -> list[tuple[int, int]]:
    """Return the useful exchanges: pairs of a partition to split, and a centroid to remove in return.

    Args:
        gains: Gain of splitting each partition.
        losses: Loss of removing each centroid.
        heirs: Centroids to which the rows of each centroid move if it is removed. The heir with the most rows is kept.
    """
    is_taken = np.zeros(len(gains), np.bool_)
    spare = iter(np.argsort(losses, kind="stable").tolist())
    pairs: list[tuple[int, int]] = []
    for crowded in np.argsort(-gains, kind="stable").tolist():
        if is_taken[crowded]:
            continue
        is_taken[crowded] = True
        loser = next((each for each in spare if not is_taken[each]), None)
        if loser is None or gains[crowded] <= losses[loser]:
            break
        is_taken[loser] = True
        if len(heirs[loser]):
            is_taken[np.bincount(heirs[loser]).argmax()] = True
        pairs.append((crowded, loser))
    return pairs
