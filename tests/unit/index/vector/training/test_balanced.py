"""Centroids move to useful positions: one per cluster, from any random start."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lance_duck.index.vector.training.balanced import balanced_clusters, exchanged, halved, plain_rounds

CLUSTERS, DIM = 60, 16


def clustered(sizes: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Vectors in clusters far apart, and the cluster of each."""
    rng = np.random.default_rng(3)
    centres = 10 * rng.standard_normal((len(sizes), DIM))
    cluster = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    return (centres[cluster] + 0.5 * rng.standard_normal((len(cluster), DIM))).astype(np.float32), cluster


def nearest(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> NDArray[np.int64]:
    apart = (centroids**2).sum(axis=1) - 2 * vectors @ centroids.T
    return np.asarray(apart.argmin(axis=1))


def loss(vectors: NDArray[np.float32], centroids: NDArray[np.float32]) -> float:
    return float(((vectors - centroids[nearest(vectors, centroids)]) ** 2).sum(dtype=np.float64))


@pytest.mark.parametrize("most", [40, 400])
def test_each_cluster_gets_a_centroid(most: int) -> None:
    vectors, cluster = clustered(np.linspace(20, most, CLUSTERS).astype(np.int64))
    plain = plain_rounds(vectors, None, CLUSTERS, 20, 1)
    assert (
        len(np.unique(np.stack([cluster, nearest(vectors, plain)]), axis=1).T) > CLUSTERS
    )  # some are cut, or share one
    found = balanced_clusters(vectors, CLUSTERS, 20, 1)
    assert len(np.unique(np.stack([cluster, nearest(vectors, found)]), axis=1).T) == CLUSTERS


def test_partitions_are_even_if_clusters_outnumber_centroids() -> None:
    vectors, _ = clustered(np.full(4 * CLUSTERS, 25))
    plain, found = plain_rounds(vectors, None, CLUSTERS, 20, 1), balanced_clusters(vectors, CLUSTERS, 20, 1)
    sizes = [np.bincount(nearest(vectors, each)).astype(float) for each in (plain, found)]
    assert sizes[1].max() < sizes[0].max()
    assert (sizes[1] ** 2).sum() < 0.9 * (sizes[0] ** 2).sum()  # the rows that a search for each of them reads
    assert loss(vectors, found) < loss(vectors, plain)


def test_the_same_vectors_give_the_same_centroids() -> None:
    vectors, _ = clustered(np.full(20, 30))
    assert np.array_equal(balanced_clusters(vectors, 16, 10, 1), balanced_clusters(vectors.copy(), 16, 10, 1))


@pytest.mark.parametrize(("count", "rounds"), [(1, 20), (2, 1), (3, 2), (50, 4)])
def test_few_centroids_and_few_rounds_are_enough(count: int, rounds: int) -> None:
    vectors, _ = clustered(np.full(10, 5))
    found = balanced_clusters(vectors, count, rounds, 1)
    assert found.shape == (count, DIM)
    assert np.isfinite(found).all()
    if count == 1:
        np.testing.assert_allclose(found[0], vectors.mean(axis=0), atol=1e-4)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e15])
def test_identical_vectors_can_be_clustered(value: float) -> None:
    vectors = np.full((100, DIM), value, np.float32)
    np.testing.assert_allclose(balanced_clusters(vectors, 5, 20, 1), vectors[:5], rtol=1e-2)


def test_an_exchange_moves_a_centroid_to_an_uncovered_cluster() -> None:
    vectors, cluster = clustered(np.array([50, 50, 50]))
    means = np.stack([vectors[cluster == i].mean(axis=0) for i in range(3)])
    shared = np.stack([(means[0] + means[1]) / 2, means[2] + 0.1, means[2] - 0.1])
    moved, count = exchanged(vectors, shared)
    assert count == 1
    assert len(np.unique(nearest(means, moved))) == 3
    assert exchanged(vectors, means)[1] == 0


def test_halving_separates_distant_groups_and_reports_the_gain() -> None:
    vectors, cluster = clustered(np.array([30, 70]))
    half = halved(vectors, np.arange(100), np.array([0, 100]))
    means = np.stack([vectors[cluster == i].mean(axis=0) for i in range(2)])
    found = half.means[0]
    np.testing.assert_allclose(found[np.lexsort(found.T)], means[np.lexsort(means.T)], atol=1e-4)
    assert half.pairs.tolist() == [30 * 70]
    whole = float(((vectors - vectors.mean(axis=0)) ** 2).sum())
    assert half.gains[0] == pytest.approx(whole - loss(vectors, found), rel=1e-4)
