"""Distributed k-means rounds equal rounds over all vectors."""

from __future__ import annotations

import numpy as np
import pytest

from lance_duck.index.vector.training.lloyd import is_settled, moved, some_of, sums_of

VECTORS = np.random.default_rng(5).normal(size=(300, 6)).astype(np.float32)


@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_partial_sums_of_lloyd_rounds_add_up(metric: str) -> None:
    centroids = VECTORS[:5]
    whole = moved([sums_of(VECTORS, centroids, metric)], centroids)
    parts = moved(
        [sums_of(part, centroids, metric) for part in (VECTORS[:70], VECTORS[70:70], VECTORS[70:])], centroids
    )
    assert np.allclose(whole[0], parts[0], atol=1e-6)
    assert whole[1] == pytest.approx(parts[1])


def test_centroids_move_to_the_mean_of_their_vectors() -> None:
    centroids = VECTORS[:3]
    nearest = ((VECTORS[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    found, loss = moved([sums_of(VECTORS, centroids, "l2")], centroids)
    assert np.allclose(found, [VECTORS[nearest == i].mean(axis=0) for i in range(3)], atol=1e-5)
    assert loss == pytest.approx(((VECTORS - centroids[nearest]) ** 2).sum(), rel=1e-5)


def test_an_empty_centroid_splits_the_largest_cluster() -> None:
    centroids = np.concatenate([VECTORS[:1], np.full((1, 6), 99, np.float32)])
    found, _ = moved([sums_of(VECTORS, centroids, "l2")], centroids)
    assert np.allclose(found, VECTORS.mean(axis=0), rtol=0.01, atol=0.01)
    assert not np.array_equal(found[0], found[1])
    assert sums_of(VECTORS, found, "l2").counts.min() > 0


def test_rounds_end_once_the_gain_is_small() -> None:
    assert not is_settled(None, 5.0)
    assert not is_settled(5.0, 4.0)
    assert is_settled(5.0, 5.0 - 1e-5)
    assert is_settled(0.0, 0.0)


def test_sampled_vectors_keep_their_order() -> None:
    found = some_of(np.arange(50), 7, 1)
    assert len(found) == 7
    assert (np.diff(found) > 0).all()
