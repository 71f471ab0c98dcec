from __future__ import annotations

import numpy as np
import pytest

from lance_duck.index.vector.layout import Partitions
from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.search.frontier import Frontier, Spread, sampled_places

NARROW = Spread(0.0, 0.0, 0.05)  # vectors are nearly as far away as their centroids


def frontier(distances: list[float], counts: list[int], k: int = 2, **probe: object) -> Frontier:
    """Frontier of one query."""
    row = np.array([distances], np.float32)
    return Frontier(row, None, np.array(counts), NARROW, k, Probe(**{"nprobes": 1, "recall": 0.9, **probe}))


def test_the_nearest_partitions_with_allowed_vectors_come_first() -> None:
    assert frontier([4, 1, 3, 2], [5, 0, 5, 5]).first().tolist() == [[3]]
    assert frontier([4, 1, 3, 2], [5, 0, 5, 5], nprobes=2).first().tolist() == [[3, 2]]


def test_the_first_partitions_hold_k_vectors() -> None:
    assert frontier([1, 2, 3], [1, 1, 9], k=3).first().tolist() == [[0, 1, 2]]


def test_only_partitions_with_expected_neighbours_are_searched() -> None:
    search = frontier([1, 2, 3, 4, 5], [5, 1, 9, 5, 5])
    assert search.first().tolist() == [[0]]
    assert search.further(np.array([3.5], np.float32)).tolist() == [[2]]  # as many as before
    assert search.further(np.array([3.5], np.float32)).tolist() == [[1]]
    assert search.further(np.array([3.5], np.float32)).shape == (1, 0)


def test_partitions_within_the_allowed_loss_are_skipped() -> None:
    for recall, more in ((0.9, []), (0.99, [1])):
        search = frontier([1, 2], [99, 3], recall=recall)
        search.first()
        assert search.further(np.array([3], np.float32)).tolist() == [more]


def test_a_recall_of_one_skips_no_partition_with_allowed_vectors() -> None:
    search, searched = frontier([1, 1e6, 1e3, 2], [9, 1, 0, 1], recall=1.0), []
    partitions = search.first()
    while partitions.shape[1]:
        searched += partitions[0].tolist()
        partitions = search.further(np.array([1.5], np.float32))
    assert searched == [0, 3, 1]


def test_max_nprobes_limits_the_search() -> None:
    search = frontier([1, 2, 3], [1, 1, 9], recall=1.0, max_nprobes=2, k=5)
    assert search.first().tolist() == [[0, 1]]
    assert search.further(np.array([np.inf], np.float32)).shape == (1, 0)


def test_each_query_searches_its_nearest_partitions() -> None:
    distances = np.array([[1, 2, 3], [3, 2, 1]], np.float32)
    search = Frontier(distances, None, np.array([4, 1, 4]), NARROW, 4, Probe(nprobes=1, recall=0.9))
    assert search.first().tolist() == [[0], [2]]
    assert search.further(np.array([0.5, 2.5], np.float32)).tolist() == [[-1], [1]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [np.inf, np.nan, -np.inf, np.finfo(np.float32).max])
@pytest.mark.parametrize("limit", [1.5, np.inf, np.finfo(np.float32).max])
def test_infinite_distances_do_not_end_a_search(far: float, limit: float) -> None:
    search, searched = frontier([1, 2, far, 4], [5, 5, 5, 5], recall=1.0), []
    partitions = search.first()
    while partitions.shape[1]:
        searched += [partition for partition in partitions[0].tolist() if partition >= 0]
        partitions = search.further(np.array([limit], np.float32))
    assert {0, 1} <= set(searched)
    assert len(searched) == len(set(searched))


@pytest.mark.parametrize("is_dot", [False, True])
def test_the_spread_describes_vectors_around_their_centroids(is_dot: bool) -> None:
    rng = np.random.default_rng(1)
    centroids = rng.standard_normal((400, 24)).astype(np.float32)
    vectors = centroids + 0.5 * rng.standard_normal((400, 24)).astype(np.float32)
    spread = Spread.of(vectors, centroids, is_dot=is_dot)
    assert spread.radius == pytest.approx(0 if is_dot else 24 / 4, rel=0.05)
    assert spread.deviation == pytest.approx(0.5 if is_dot else 1.0, rel=0.1)  # twice 0.5 for squared distances


@pytest.mark.parametrize("is_dot", [False, True])
def test_a_single_vector_has_zero_spread(is_dot: bool) -> None:
    one = np.ones((1, 3), np.float32)
    assert Spread.of(one, one, is_dot=is_dot) == Spread(0.0, 0.0, 0.0)


def test_sampled_positions_are_reproducible_and_in_nonempty_partitions() -> None:
    partitions = Partitions(np.array([0, 0, 5]), np.array([5, 0, 900]))
    places = sampled_places(partitions)
    assert places == sampled_places(partitions)
    assert {partition for partition, _ in places} == {0, 2}
    assert all(0 <= place < partitions.lengths[partition] for partition, place in places)
    assert len(places) == len(set(places))
