"""Graphs joined from near neighbours reach the recall of others for all vectors."""

from __future__ import annotations

from typing import Any

import faiss
import numpy as np
import pytest
from packaging.version import Version

from lance_duck.index.vector.graph import join
from lance_duck.index.vector.graph.hnsw import Graph, build_graph, flat_storage, index_of
from lance_duck.index.vector.graph.join import join_graph
from lance_duck.index.vector.graph.near import near
from lance_duck.index.vector.graph.rows import graph_rows, read_graph

DIM = 16


def blobs(count: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centers = np.random.default_rng(9).normal(size=(40, DIM))
    return (centers[random.integers(40, size=count)] + 0.6 * random.normal(size=(count, DIM))).astype(np.float32)


def recall(graph: Graph, vectors: np.ndarray, queries: np.ndarray, ef: int) -> float:
    storage = flat_storage(DIM, "l2")
    storage.add(vectors)
    parameters: Any = faiss.SearchParametersHNSW(efSearch=ef)
    found = index_of(storage, graph).search(queries, 10, params=parameters)[1]
    truth = storage.search(queries, 10)[1]
    return float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found.tolist(), truth.tolist(), strict=True)]))


def joined(vectors: np.ndarray, m: int = 16, ef_construction: int = 100, max_level: int = 7) -> Graph:
    graph = join_graph(vectors, m, ef_construction, max_level)
    assert graph is not None
    return graph


def test_joined_graphs_reach_the_recall_of_incremental_graphs() -> None:
    vectors, queries = blobs(3000), blobs(100, 1)
    steps = build_graph(vectors, "l2", m=16, ef_construction=100)
    graph = joined(vectors)
    for ef in (10, 40):
        assert recall(graph, vectors, queries, ef) >= recall(steps, vectors, queries, ef) - 0.03


def test_joined_graph_rows_have_the_lance_layout() -> None:
    vectors = blobs(3000)
    graph = joined(vectors)
    rows = graph_rows(graph, vectors, "l2", m=16)
    again = read_graph(rows.metadata, *rows.rows.columns[:2], 3000, where="")
    np.testing.assert_array_equal(again.levels, graph.levels)
    assert [int((graph.levels > level).sum()) for level in range(3)] == [3000, 187, 11]
    lists = rows.rows.column(1).to_pylist()
    ids = rows.rows.column(0).to_pylist()
    assert max(len(found) for found in lists[:3000]) == 32
    assert max(len(found) for found in lists[3000:]) <= 16
    assert all(number not in found and len(set(found)) == len(found) for number, found in zip(ids, lists, strict=True))
    assert graph.levels[graph.entry_point] == graph.levels.max()


@pytest.mark.skipif(
    Version(faiss.__version__) < Version("1.15.1"), reason="threads of faiss before 1.15.1 insert vectors in any order"
)
def test_the_same_vectors_give_the_same_graph() -> None:
    vectors = blobs(2500)
    np.testing.assert_array_equal(joined(vectors).neighbors, joined(vectors).neighbors)


def test_the_number_of_levels_is_limited() -> None:
    assert joined(blobs(500), max_level=2).levels.max() == 2
    assert joined(blobs(500), max_level=1).levels.max() == 1


def test_vectors_far_from_the_origin_are_found() -> None:
    vectors, queries = blobs(3000) + 1000, blobs(100, 1) + 1000
    assert recall(joined(vectors), vectors, queries, 40) > 0.95


@pytest.mark.parametrize(
    "vectors",
    [np.zeros((3000, DIM), np.float32), np.full((3000, DIM), 3e38, np.float32)],
    ids=["equal", "large"],
)
def test_degenerate_vectors_give_no_graph_or_a_valid_one(vectors: np.ndarray) -> None:
    graph = join_graph(vectors, 16, 40, 7)
    assert graph is None or recall(graph, vectors, vectors[:3], 40) >= 0


def test_vectors_with_missed_neighbours_are_not_joined() -> None:
    vectors = np.random.default_rng(5).normal(size=(20_000, 32)).astype(np.float32)
    _, numbers, _, share = near(vectors, 40)
    storage = flat_storage(32, "l2")
    storage.add(vectors)
    truth = storage.search(vectors[::100], 41)[1][:, 1:]
    same = [len(set(a) & set(b)) for a, b in zip(numbers[::100].tolist(), truth.tolist(), strict=True)]
    assert share == pytest.approx(sum(same) / truth.size, abs=0.06)
    assert share < 0.7
    assert join_graph(vectors, 20, 150, 7) is None


def test_a_single_vector_has_full_neighbour_recall() -> None:
    assert near(np.ones((1, 4), np.float32), 3).share == 1


def test_isolated_groups_of_equal_vectors_are_detected() -> None:
    points = blobs(60)
    vectors = points[np.random.default_rng(3).integers(60, size=3000)]
    graph = join_graph(vectors, 8, 40, 7)
    if graph is not None:
        storage = flat_storage(DIM, "l2")
        storage.add(vectors)
        far = index_of(storage, graph).search(points, 1)[0]
        assert (far == 0).mean() > 0.9


@pytest.mark.parametrize(("count", "k"), [(2, 3), (300, 5), (3000, 5)])
def test_near_neighbours_equal_the_exact_ones(count: int, k: int) -> None:
    vectors = blobs(count)
    far, numbers, order, share = near(vectors, k)
    assert np.sort(order).tolist() == list(range(count))
    assert far.shape == numbers.shape == (count, k)
    assert (numbers != np.arange(count)[:, None]).all()
    there = min(k, count - 1)
    assert (np.diff(far[:, :there], axis=1) >= 0).all()
    assert np.isinf(far[:, there:]).all()
    assert (numbers[:, :there] >= 0).mean() > 0.99
    assert (numbers[:, there:] == -1).all()
    exact = flat_storage(DIM, "l2")
    exact.add(vectors)
    truth = exact.search(vectors, there + 1)[1][:, 1:]
    same = [len(set(a) & set(b)) for a, b in zip(numbers.tolist(), truth.tolist(), strict=True)]
    assert sum(same) >= 0.9 * truth.size
    assert share == pytest.approx(sum(same) / truth.size, abs=0.02)


def test_a_graph_built_in_parts_is_identical(monkeypatch: pytest.MonkeyPatch) -> None:
    members = np.random.default_rng(1).permutation(500)[:130]
    sparse = build_graph(blobs(130), "l2", m=8, ef_construction=40)
    table = np.random.default_rng(2).integers(-1, 500, (500, 16)).astype(np.int32)
    whole = join._whole(sparse, members, table)
    monkeypatch.setattr(join, "_AT_ONCE", 77)
    parts = join._whole(sparse, members, table)
    assert parts.entry_point == whole.entry_point == members[sparse.entry_point]
    for name in ("levels", "room", "offsets", "neighbors"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    for row in range(500):
        first = int(whole.offsets[row])
        np.testing.assert_array_equal(whole.neighbors[first : first + 16], table[row])
    for place, row in enumerate(members.tolist()):
        old = sparse.neighbors[int(sparse.offsets[place]) + 16 : int(sparse.offsets[place + 1])]
        new = whole.neighbors[int(whole.offsets[row]) + 16 : int(whole.offsets[row + 1])]
        np.testing.assert_array_equal(new, np.where(old >= 0, members[old], -1))


@pytest.mark.parametrize("dim", [1, 3, 2048])
def test_vectors_of_any_length_are_joined(dim: int) -> None:
    random = np.random.default_rng(4)
    directions = random.normal(size=(4, dim))
    vectors = (random.normal(size=(2300 if dim < 9 else 600, 4)) @ directions).astype(np.float32)
    graph = joined(vectors, 8, 40)
    storage = flat_storage(dim, "l2")
    storage.add(vectors)
    parameters: Any = faiss.SearchParametersHNSW(efSearch=100)
    assert (index_of(storage, graph).search(vectors[:50], 1, params=parameters)[0] == 0).mean() > 0.9


def test_the_thread_count_does_not_change_neighbours() -> None:
    vectors = blobs(3000)
    threads: Any = faiss
    count, many = threads.omp_get_max_threads(), near(vectors, 9)
    threads.omp_set_num_threads(1)
    try:
        alone = near(vectors, 9)
    finally:
        threads.omp_set_num_threads(count)
    for one, other in zip(many, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_vector_is_compared_with_its_block_if_near_blocks_are_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lance_duck.index.vector.graph.near._MOST_TILES", 12)
    half = np.random.default_rng(3).random((2048, DIM), np.float32)
    vectors = np.concatenate([half, half + np.float32(1e-3)])
    twins = (np.arange(4096) + 2048) % 4096
    assert (near(vectors, 4).numbers[:, 0] == twins).mean() > 0.98
