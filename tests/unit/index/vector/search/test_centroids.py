from __future__ import annotations

import faiss
import numpy as np
import pytest

from lance_duck.index.vector.costs import SLICE_QUERIES
from lance_duck.index.vector.search.centroids import near_partitions


@pytest.mark.parametrize("count", [1, 2, 25, 2 * SLICE_QUERIES + 5])
@pytest.mark.parametrize(("metric", "offset"), [("l2", 0), ("l2", 10_000), ("dot", 0)])
def test_batched_queries_find_the_same_centroids(count: int, metric: str, offset: int) -> None:
    rng = np.random.default_rng(3)
    centroids = (rng.standard_normal((30, 24)) + offset).astype(np.float32)
    queries = (rng.standard_normal((count, 24)) + offset).astype(np.float32)
    index = faiss.IndexFlat(24, faiss.METRIC_INNER_PRODUCT if metric == "dot" else faiss.METRIC_L2)
    index.add(centroids)
    distances, places = near_partitions(index, queries, 9)
    if metric == "dot":
        exact = -(queries.astype(np.float64) @ centroids.astype(np.float64).T)
    else:
        exact = ((queries[:, None].astype(np.float64) - centroids) ** 2).sum(axis=2)
    assert np.array_equal(places, np.argsort(exact, axis=1)[:, :9])
    for i in range(count):
        far, near = index.search(queries[i : i + 1], 9)
        assert np.array_equal(far[0], distances[i])
        assert np.array_equal(near[0], places[i])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("count", "dim"), [(SLICE_QUERIES, 2048), (1100, 128)])
def test_centroids_far_from_zero_are_found_by_direct_distances(count: int, dim: int, threads: int) -> None:
    rng = np.random.default_rng(5)
    index = faiss.IndexFlat(dim)
    index.add((rng.standard_normal((10, dim)) + 1000).astype(np.float32))
    queries = (rng.standard_normal((count, dim)) + 1000).astype(np.float32)
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads)
    try:
        together = near_partitions(index, queries, 3)
        alone = [near_partitions(index, queries[i : i + 1], 3) for i in range(count)]
        products, _ = index.search(queries, 3)
    finally:
        faiss.omp_set_num_threads(before)
    for part, found in zip(together, zip(*alone, strict=True), strict=True):
        assert np.array_equal(part, np.concatenate(found))
    assert not np.array_equal(products, together[0])


def test_missing_centroids_are_minus_one() -> None:
    index = faiss.IndexFlat(2)
    index.add(np.zeros((3, 2), np.float32))
    _, places = near_partitions(index, np.zeros((25, 2), np.float32), 5)
    assert (np.sort(places, axis=1) == [-1, -1, 0, 1, 2]).all()
