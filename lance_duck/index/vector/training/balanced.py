"""Centroids of partitions: k-means that moves centroids from where they hardly help to where they help most.

Plain k-means stays where chance began: some centroids share what one could stand for, others stand for many clusters.
The mean of many clusters lies near to everything, so that nearly every search looks into such a partition, which is
large besides. Here rounds of k-means go along with exchanges: the rows of a centroid that is hardly missed go to the
next nearest ones, and a partition whose halves lie far apart gets two. What either changes of the sum of squared
distances decides, plus a price for uneven sizes, `EVENNESS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import EVENNESS, SETTLED_SAMPLE
from lance_duck.index.vector.library import faiss

Vectors = NDArray[np.float32]

_FIRST: Final = 0.3  # of all rounds: plain ones, of a part of the sample
_LAST: Final = 0.25  # of all rounds: plain ones, of the whole sample; between them centroids are exchanged
_LEAST_HALVED: Final = 4  # vectors
_TURNS: Final = 3  # of a power iteration
_HALVINGS: Final = 4  # rounds of k-means with two centroids


@dataclass(frozen=True)
class Halves:
    """A partition cut in two.

    Attributes:
        means: float32 (2, dim).
        gain: What the sum of squared distances loses.
        pairs: Pairs of a vector of one half and one of the other.
    """

    means: Vectors
    gain: float
    pairs: int


def balanced_clusters(sample: Vectors, count: int, rounds: int, seed: int) -> Vectors:
    """Return the centroids (count, dim) of a sample, by Euclidean distances.

    Args:
        sample: float32 (n, dim), whose squared distances are finite; n is at least `count`.
        count: Centroids.
        rounds: Rounds of training, at most.
        seed: Seed of what is left to chance.
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
    """Return centroids after rounds of plain k-means, from some centroids, or for None from vectors by chance."""
    clustering: Any = faiss.Clustering(sample.shape[1], count)
    clustering.niter, clustering.seed = rounds, seed
    clustering.min_points_per_centroid, clustering.max_points_per_centroid = 1, len(sample)
    if centroids is not None:
        faiss.copy_array_to_vector(np.ascontiguousarray(centroids).reshape(-1), clustering.centroids)
    clustering.train(sample, faiss.IndexFlatL2(sample.shape[1]))
    result: Vectors = faiss.vector_to_array(clustering.centroids).reshape(count, -1)
    return result


def exchanged(sample: Vectors, centroids: Vectors) -> tuple[Vectors, int]:
    """Return the centroids after a round in which some move to where they help more, and how many these are."""
    count = len(centroids)
    if count < 2:
        return centroids, 0
    index: Any = faiss.IndexFlatL2(sample.shape[1])
    index.add(np.ascontiguousarray(centroids))
    distances, nearest = index.search(sample, 2)
    own, next_ = nearest[:, 0], nearest[:, 1]
    order, sizes = np.argsort(own, kind="stable"), np.bincount(own, minlength=count)
    members = np.split(order, np.cumsum(sizes)[:-1])
    price = EVENNESS * float(np.maximum(distances[:, 0], 0).mean(dtype=np.float64)) * count / len(sample)
    missed = distances[:, 1] - distances[:, 0] + 2 * price * sizes[next_]
    losses = np.bincount(own, missed, minlength=count).astype(np.float64)
    halves = [halved(sample[rows]) for rows in members]
    gains = np.array([0.0 if each is None else each.gain + 2 * price * each.pairs for each in halves])
    result = _means(sample, members, centroids)
    pairs = _pairs(gains, losses, [next_[rows] for rows in members])
    for crowded, spare in pairs:
        half = halves[crowded]
        assert half is not None  # it gains something
        result[crowded], result[spare] = half.means
    return result, len(pairs)


def halved(vectors: Vectors) -> Halves | None:
    """Return the halves of a partition by k-means, begun along its longest axis; None if it is not cut."""
    if len(vectors) < _LEAST_HALVED:
        return None
    middle = vectors.mean(axis=0)
    inside = vectors - middle
    scale = float(np.abs(inside).max())
    if not scale:
        return None
    inside /= np.float32(scale)  # products of large numbers would be infinite
    side = inside @ _axis(inside) > 0
    for _ in range(_HALVINGS):
        if side.all() or not side.any():
            return None
        one, other = inside[side].mean(axis=0), inside[~side].mean(axis=0)
        side = inside @ (one - other) > (one @ one - other @ other) / 2
    ones = int(side.sum())
    others = len(side) - ones
    if not ones or not others:
        return None
    one, other = inside[side].mean(axis=0), inside[~side].mean(axis=0)
    gain = scale**2 * (ones * float(one @ one) + others * float(other @ other))
    return Halves(np.stack([middle + scale * one, middle + scale * other]), gain, ones * others)


def _axis(inside: Vectors) -> Vectors:
    """Return about the direction in which vectors, less their mean, differ most."""
    axis: NDArray[Any] = inside[np.einsum("ij,ij->i", inside, inside).argmax()]
    for _ in range(_TURNS):
        axis = (inside @ axis) @ inside
        axis /= np.maximum(np.linalg.norm(axis), np.float32(np.finfo(np.float32).tiny))
    return axis


def _means(sample: Vectors, members: list[NDArray[np.int64]], centroids: Vectors) -> Vectors:
    """Return the mean of each partition; the centroid itself where there is no vector."""
    means = [sample[rows].mean(axis=0) if len(rows) else old for rows, old in zip(members, centroids, strict=True)]
    return np.ascontiguousarray(np.stack(means), np.float32)


def _pairs(
    gains: NDArray[np.float64], losses: NDArray[np.float64], heirs: list[NDArray[np.int64]]
) -> list[tuple[int, int]]:
    """Return partitions to be cut in two, each with a centroid that is spared for it, while that gains anything.

    Args:
        gains: Gain of cutting each partition.
        losses: Loss of sparing each centroid.
        heirs: Of each the centroids that its rows go to then; where most go, stays.
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
