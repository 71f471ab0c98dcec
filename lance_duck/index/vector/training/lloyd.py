"""Lloyd's k-means over distributed vectors. Each process sums up its vectors, and the sums are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.threads import safe_after_fork
from lance_duck.index.vector.training.model import nearest_centroids, quantizer

_APART: Final = 1 / 1024  # relative distance between the two copies of a split centroid
_ENOUGH: Final = 1e-4  # training ends after a round that lowers the distance sum by at most this share


@dataclass(frozen=True)
class Sums:
    """The vector sums of one process in a round. It can be pickled.

    Attributes:
        sums: float64 (centroids, dim), sum of the vectors nearest to each centroid.
        counts: int64 (centroids,), number of vectors nearest to each centroid.
        loss: Sum of faiss's distances, or for dot, of 1 - inner product.
    """

    sums: NDArray[np.float64]
    counts: NDArray[np.int64]
    loss: float


@safe_after_fork
def sums_of(vectors: NDArray[np.float32], centroids: NDArray[np.float32], metric: str) -> Sums:
    """Sum up the vectors (n, dim) that are nearest to each centroid (k, dim). For cosine, vectors are normalised."""
    sums = np.zeros(centroids.shape, np.float64)
    if not len(vectors):
        return Sums(sums, np.zeros(len(centroids), np.int64), 0.0)
    nearest, distances = nearest_centroids(quantizer(centroids, metric), np.ascontiguousarray(vectors))
    order = np.argsort(nearest, kind="stable")
    counts = np.bincount(nearest, minlength=len(centroids))
    filled = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[filled]
    sums[filled] = np.add.reduceat(vectors[order], starts, axis=0, dtype=np.float64)
    total = float(distances.sum(dtype=np.float64))
    return Sums(sums, counts, len(vectors) - total if metric == "dot" else total)


def moved(parts: Sequence[Sums], centroids: NDArray[np.float32]) -> tuple[NDArray[np.float32], float]:
    """Return the centroids of the next round, and the loss of this one.

    A centroid without vectors moves to the largest cluster, and splits it.
    """
    counts = np.sum([part.counts for part in parts], axis=0)
    sums = np.sum([part.sums for part in parts], axis=0)
    means = centroids.astype(np.float64)
    filled = counts > 0
    means[filled] = sums[filled] / counts[filled, None]
    for empty in np.flatnonzero(~filled).tolist():
        full = int(counts.argmax())
        sign = np.where(np.arange(means.shape[1]) % 2, 1 - _APART, 1 + _APART)
        means[empty], means[full] = means[full] * sign, means[full] * (2 - sign)
        counts[empty] = counts[full] // 2
        counts[full] -= counts[empty]
    return means.astype(np.float32), sum(part.loss for part in parts)


def is_settled(before: float | None, loss: float) -> bool:
    """Return whether another round would hardly lower the loss."""
    return before is not None and abs(before - loss) <= _ENOUGH * max(abs(before), np.finfo(np.float64).tiny)


def some_of(vectors: NDArray[Any], count: int, seed: int) -> NDArray[Any]:
    """Return `count` randomly chosen vectors in their original order. There must be at least `count` vectors."""
    positions = np.random.default_rng(seed).choice(len(vectors), count, replace=False)
    sample: NDArray[Any] = vectors[np.sort(positions)]
    return sample
