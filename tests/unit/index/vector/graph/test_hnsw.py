"""Graphs as rows and as faiss takes them: there and back, searched, and refused where a walk would leave its arrays."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.index.vector.graph_segments import GraphSegment, segment_of

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError
from lance_duck.index.files import SegmentReader
from lance_duck.index.vector.graph.hnsw import Graph, build_graph, flat_storage, graph_of, index_of, points
from lance_duck.index.vector.graph.rows import GRAPH_SCHEMA, GraphRows, graph_metadata, graph_rows, read_graph
from lance_duck.index.vector.metric import distances, normalized
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search import graph_partition
from lance_duck.index.vector.search.contract import Hits, Probe
from lance_duck.index.vector.search.graphs import GraphIndex
from lance_duck.store import open_store

DIM = 8
METRICS = ("l2", "cosine", "dot")
KINDS = {"IVF_HNSW_FLAT": 0.95, "IVF_HNSW_SQ": 0.9, "IVF_HNSW_PQ": 0.6}  # and their minimum recall


def clustered(count: int, dim: int = DIM, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centers = random.normal(size=(20, dim))
    return (centers[random.integers(20, size=count)] + random.normal(size=(count, dim)) / 3).astype(np.float32)


def opened(segment: GraphSegment, folder: Path, **written: Any) -> GraphIndex:
    store = open_store(str(folder))
    return GraphIndex(VectorFiles(SegmentReader(store, segment.write(store, **written).directory)))


def nearest(metric: str, queries: np.ndarray, vectors: np.ndarray, k: int, allowed: np.ndarray | None = None) -> Any:
    far = distances(metric, queries, vectors)
    if allowed is not None:
        far[:, ~allowed] = np.inf
    return np.argsort(far, axis=1, kind="stable")[:, :k]


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found.tolist(), truth.tolist(), strict=True)]))


def always_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where looking at all vectors would be faster."""
    monkeypatch.setattr(graph_partition, "WALK", 0)
    monkeypatch.setattr(graph_partition, "WALK_TOGETHER", 0)


@pytest.mark.parametrize("metric", METRICS)
def test_a_graph_round_trips_through_its_rows(metric: str) -> None:
    vectors, queries = clustered(700), clustered(30, seed=1)
    if metric == "cosine":
        vectors, queries = normalized(vectors), normalized(queries)
    storage = flat_storage(DIM, metric)
    built: Any = faiss.IndexHNSW(storage, 4)
    built.add(vectors)
    rows = graph_rows(graph_of(built), vectors, metric, m=4)
    graph = read_graph(rows.metadata, *rows.rows.columns[:2], 700, where="")
    again = index_of(storage, graph)
    for ours, theirs in zip(again.search(queries, 5), built.search(queries, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_graph_rows_have_the_lance_layout() -> None:
    vectors = clustered(900)
    rows = graph_rows(build_graph(vectors, "l2", m=3, ef_construction=30), vectors, "l2", m=3, ef_construction=30)
    table, offsets = rows.rows, rows.metadata.level_offsets
    assert table.schema == GRAPH_SCHEMA
    assert (offsets[0], offsets[1], offsets[-1], len(offsets)) == (0, 900, table.num_rows, 8)
    assert rows.metadata.params == {"max_level": 7, "m": 3, "ef_construction": 30, "prefetch_distance": 2}
    ids = table.column(0).to_numpy()
    assert ids[:900].tolist() == list(range(900))
    for level in range(7):
        members = ids[offsets[level] : offsets[level + 1]]
        assert (np.diff(members.astype(int)) > 0).all()
        for row in range(offsets[level], offsets[level + 1]):
            neighbors, far = table.column(1)[row].as_py(), table.column(2)[row].as_py()
            assert len(neighbors) <= (6 if level == 0 else 3)
            assert set(neighbors) <= set(members.tolist()) - {int(ids[row])}
            np.testing.assert_allclose(far, ((vectors[neighbors] - vectors[ids[row]]) ** 2).sum(axis=1), rtol=1e-4)
    top = max(level for level in range(7) if offsets[level] < offsets[level + 1])
    assert rows.metadata.entry_point in ids[offsets[top] : offsets[top + 1]]


@pytest.mark.parametrize(("metric", "far"), [("l2", 4.0), ("cosine", 2.0), ("dot", 2.0)])
def test_stored_neighbour_distances_equal_those_of_lance(metric: str, far: float) -> None:
    vectors = np.array([[1, 0], [-1, 0]], np.float32)
    rows = graph_rows(build_graph(vectors, metric, m=2), vectors, metric, m=2)
    assert rows.rows.column(2).slice(0, 2).to_pylist() == [[far], [far]]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_graphs_of_a_few_vectors_round_trip(count: int) -> None:
    vectors = clustered(count)
    rows = graph_rows(build_graph(vectors, "l2"), vectors, "l2")
    graph = read_graph(rows.metadata, *rows.rows.columns[:2], count, where="")
    assert graph.num_vectors == count
    found = index_of(storage := flat_storage(DIM, "l2"), graph)
    storage.add(vectors)
    assert sorted(found.search(clustered(1), 3)[1][0].tolist()) == sorted([-1] * (3 - count) + list(range(count)))
    assert graph_metadata(json.dumps([rows.metadata.to_json()]), where="")[0].num_rows == rows.rows.num_rows


def test_the_number_of_levels_is_limited() -> None:
    graph = build_graph(clustered(3000), "l2", m=2, ef_construction=10, max_level=3)
    assert graph.levels.max() == 3


@pytest.mark.parametrize("wrong", [{"m": 1}, {"m": 5000}, {"ef_construction": 0}, {"max_level": 0}])
def test_invalid_parameters_are_rejected(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        build_graph(clustered(10), "l2", **wrong)


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_segment_finds_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, metric: str, partitions: int
) -> None:
    always_walk(monkeypatch)
    vectors, queries = clustered(800), clustered(40, seed=1)
    index = opened(segment_of(vectors, kind, metric, partitions), tmp_path)
    assert (index.dim, index.num_rows, index.metric, index.is_exact) == (DIM, 800, metric, kind.endswith("FLAT"))
    hits = index.search(queries, 10, None, Probe(ef=100))
    rows = index.rows()[hits.positions]
    assert recall(rows, nearest(metric, queries, vectors, 10)) > KINDS[kind]
    assert (np.diff(hits.distances, axis=1) >= 0).all()
    if index.is_exact:
        true = np.take_along_axis(distances(metric, queries, vectors), rows.astype(int), axis=1)
        np.testing.assert_allclose(hits.distances, true, rtol=1e-3, atol=1e-5)
    for i in range(3):
        alone = index.search(queries[i : i + 1], 10, None, Probe(ef=100))
        np.testing.assert_array_equal(alone.positions[0], hits.positions[i])


@pytest.mark.parametrize("walk", [False, True])
@pytest.mark.parametrize("share", [0.5, 0.05, 0.004, 0.0])
@pytest.mark.parametrize("queries", [1, 30])
def test_a_filtered_search_finds_only_allowed_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, walk: bool, share: float, queries: int
) -> None:
    if walk:
        always_walk(monkeypatch)
    vectors, asked = clustered(1500), clustered(queries, seed=1)
    index = opened(segment_of(vectors, partitions=3), tmp_path)
    living = np.random.default_rng(2).random(1500) < share
    hits = index.search(asked, 10, living[index.rows().astype(int)], Probe(nprobes=1))
    count = min(10, int(living.sum()))
    rows = index.rows()[hits.positions[:, :count]].astype(int)
    assert living[rows].all()
    assert (hits.positions[:, :count] >= 0).all()
    assert (hits.positions[:, count:] == -1).all()
    assert np.isinf(hits.distances[:, count:]).all()
    if share == 0.004:
        assert recall(rows, nearest("l2", asked, vectors, count, living)) == 1


def test_a_search_continues_until_k_are_found(tmp_path: Path) -> None:
    vectors = clustered(300)
    index = opened(segment_of(vectors, partitions=4), tmp_path)
    query = vectors[:1]
    sizes = index.files.partitions.lengths
    all_of_them = index.search(query, 300, None, Probe(nprobes=1))
    assert sorted(all_of_them.positions[0].tolist()) == list(range(300))
    few = index.search(query, 300, None, Probe(nprobes=1, max_nprobes=1))
    assert np.count_nonzero(few.positions >= 0) in sizes
    more = index.search(query, 310, None, Probe())
    assert more.positions.shape == (1, 310)
    assert (more.positions[0, 300:] == -1).all()
    assert np.isinf(more.distances[0, 300:]).all()


def test_distances_stay_within_bounds(tmp_path: Path) -> None:
    vectors, queries = clustered(600), clustered(25, seed=3)
    index = opened(segment_of(vectors, partitions=2), tmp_path)
    far = np.sort(distances("l2", queries, vectors), axis=1)
    lower, upper = float(np.median(far[:, 20])), float(np.median(far[:, 60]))
    hits = index.search(queries, 10, None, Probe(lower=lower, upper=upper, ef=200))
    for found, positions, row in zip(hits.distances, hits.positions, far, strict=True):
        wanted = row[(row >= lower) & (row < upper)][:10]
        assert np.count_nonzero(positions >= 0) == len(wanted)
        np.testing.assert_allclose(found[: len(wanted)], wanted, rtol=1e-3)


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.search(np.zeros((1, 3), np.float32), 1, None, Probe()),
        lambda index: index.search(np.zeros((1, DIM), np.float32), 0, None, Probe()),
        lambda index: index.search(np.zeros((1, DIM), np.float32), 1, np.ones(3, np.bool_), Probe()),
    ],
    ids=["dimension", "k", "allowed"],
)
def test_invalid_queries_are_rejected(tmp_path: Path, call: Callable[[GraphIndex], Hits]) -> None:
    with pytest.raises(InvalidInputError):
        call(opened(segment_of(clustered(20)), tmp_path))


def test_partitions_are_loaded_on_demand_and_cached_by_bytes(tmp_path: Path) -> None:
    segment = segment_of(clustered(2000), partitions=4)
    index = opened(segment, tmp_path)
    empty = index.nbytes
    index.search(segment.centroids[:1], 1, None, Probe(nprobes=1))
    one = index.nbytes
    assert empty < one
    index.prewarm()
    assert one < index.nbytes
    small = GraphIndex(index.files, limit=1)
    small.prewarm()
    assert small.nbytes < index.nbytes


def test_statistics_describe_the_graphs(tmp_path: Path) -> None:
    found = opened(segment_of(clustered(500), partitions=2), tmp_path).statistics()
    assert found["index_type"] == "IVF_HNSW_FLAT"
    assert found["sub_index"]["index_type"] == "HNSW"
    assert found["sub_index"]["params"]["m"] == 20
    assert sum(p["size"] for p in found["partitions"]) == 500


def test_an_empty_partition_has_no_graph(tmp_path: Path) -> None:
    segment = segment_of(clustered(100))
    nothing = graph_rows(build_graph(clustered(0), "l2"), clustered(0), "l2")
    segment = replace(
        segment,
        centroids=np.concatenate([segment.centroids, segment.centroids + 1]),
        rows=[*segment.rows, np.empty(0, np.uint64)],
        codes=[*segment.codes, np.empty((0, DIM), np.float32)],
        graphs=[*segment.graphs, nothing],
    )
    assert json.loads(segment.text)[1] == ""
    index = opened(segment, tmp_path)
    assert (index.search(clustered(3), 100, None, Probe(nprobes=1)).positions >= 0).all()


def as_before_12(graph: GraphRows) -> GraphRows:
    """Return a graph as pylance before 12 wrote it: vector 0 on all levels, counted only on the lowest."""
    ids, neighbors, far = (column.to_pylist() for column in graph.rows.columns)
    offsets = graph.metadata.level_offsets
    rows = list(zip(ids, neighbors, far, strict=True))
    levels = [rows[low:high] for low, high in pairwise(offsets)]
    for level in levels:
        if not level or level[0][0] != 0:
            level.insert(0, (0, [], []))
    counted = [len(levels[0]), *(len(level) - 1 for level in levels[1:])]
    columns = zip(*(row for level in levels for row in level), strict=True)
    batch = pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, GRAPH_SCHEMA, strict=True)], schema=GRAPH_SCHEMA
    )
    ends = (0, *np.cumsum(counted).tolist())
    return GraphRows(batch, replace(graph.metadata, entry_point=0, level_offsets=ends))


@pytest.mark.parametrize("kind", KINDS)
def test_an_uncounted_entry_point_on_upper_levels_does_not_change_results(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    always_walk(monkeypatch)
    vectors, queries = clustered(900), clustered(40, seed=1)
    segment = segment_of(vectors, kind, partitions=3)
    now = opened(segment, tmp_path / "now").search(queries, 10, None, Probe(nprobes=3, ef=100))
    segment.graphs = [as_before_12(graph) for graph in segment.graphs]
    before = opened(segment, tmp_path / "before")
    ids = segment.graphs[0].rows.column(0).to_pylist()
    assert segment.graphs[0].metadata.num_rows == len(ids) - 6
    assert [ids[start] for start in before.graphs[0].level_offsets[:-1]] == [0] * 7
    assert before.graphs[0].num_rows == len(ids)
    before.prewarm()
    hits = before.search(queries, 10, None, Probe(nprobes=3, ef=100))
    assert recall(hits.positions, now.positions) > 0.95


@pytest.mark.parametrize("more", [-1, 1, 5, 7])
def test_rows_beyond_the_graph_levels_are_rejected(more: int, tmp_path: Path) -> None:
    segment = segment_of(clustered(200))
    rows = segment.graphs[0].rows
    changed = rows.slice(0, rows.num_rows - 1) if more < 0 else pa.concat_batches([rows, *[rows.slice(0, 1)] * more])
    segment.graphs = [GraphRows(changed, segment.graphs[0].metadata)]
    with pytest.raises(CorruptError, match="row count of the graphs"):
        opened(segment, tmp_path)


def spoiled(graph: GraphRows, ids: Any = None, neighbors: Any = None, **metadata: Any) -> GraphRows:
    """A graph with other rows or other metadata."""
    columns = [graph.rows.column(i) for i in range(3)]
    columns[0] = columns[0] if ids is None else pa.array(ids, pa.uint32())
    columns[1] = columns[1] if neighbors is None else pa.array(neighbors, pa.list_(pa.uint32()))
    rows = pa.RecordBatch.from_arrays(columns, schema=GRAPH_SCHEMA)
    return GraphRows(rows, replace(graph.metadata, **metadata))


def hostile() -> dict[str, Callable[[GraphRows], GraphRows]]:
    def changed(column: int, row: int, value: Any) -> Callable[[GraphRows], GraphRows]:
        def change(graph: GraphRows) -> GraphRows:
            values = graph.rows.column(column).to_pylist()
            values[row] = value(values[row]) if callable(value) else value
            return spoiled(graph, **{("ids", "neighbors")[column]: values})

        return change

    return {
        "neighbour beyond": changed(1, 5, [200]),
        "neighbour far beyond": changed(1, 5, [2**32 - 1]),
        "neighbour that would be -1": changed(1, 199, lambda found: [*found, 2**31]),
        "neighbour of a lower level": changed(1, -1, [0, 1, 2, 3]),
        "vectors out of order": changed(0, 3, 4),
        "vector beyond": changed(0, -1, 200),
        "vector twice on a level": changed(0, -1, lambda _: 0),
        "entry point beyond": lambda graph: replace(graph, metadata=replace(graph.metadata, entry_point=200)),
        "entry point far beyond": lambda graph: replace(graph, metadata=replace(graph.metadata, entry_point=1 << 31)),
        "levels cut": lambda graph: spoiled(graph, level_offsets=graph.metadata.level_offsets[:2]),
        "one level too many": lambda graph: spoiled(graph, level_offsets=(0, 100, *graph.metadata.level_offsets[1:])),
        "null list": changed(1, 0, None),
        "null neighbour": changed(1, 0, [None]),
        "one long list": lambda graph: spoiled(
            graph, neighbors=[[1] * 100_000] + [[] for _ in range(graph.rows.num_rows - 1)]
        ),
    }


@pytest.mark.parametrize("name", hostile())
def test_hostile_graphs_are_rejected(name: str, tmp_path: Path) -> None:
    segment = segment_of(clustered(200))
    segment.graphs = [hostile()[name](segment.graphs[0])]
    with pytest.raises(CorruptError):
        opened(segment, tmp_path).prewarm()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "[1]", "[null]", '["x"]', '["[]"]', '["{}"]', '[""]', "[" * 100_000]
    + [
        json.dumps([json.dumps({"entry_point": entry, "params": {}, "level_offsets": offsets})])
        for entry, offsets in [
            (-1, [0, 200, 210]),
            (1.5, [0, 200, 210]),
            (True, [0, 200, 210]),
            (10**30, [0, 200, 210]),
            (0, None),
            (0, [0, "200"]),
            (0, [0, 300, 200]),
            (0, [10, 200]),
            (0, [0, 1 << 62]),
        ]
    ],
)
def test_hostile_metadata_is_rejected(text: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptError):
        opened(segment_of(clustered(200)), tmp_path, text=text)


def test_walks_start_at_an_entry_point_on_any_level() -> None:
    vectors = clustered(900)
    rows = graph_rows(build_graph(vectors, "l2", m=3), vectors, "l2", m=3)
    lower = next(i for i in range(900) if i not in rows.rows.column(0).to_pylist()[900:])
    graph = read_graph(replace(rows.metadata, entry_point=lower), *rows.rows.columns[:2], 900, where="")
    storage = flat_storage(DIM, "l2")
    storage.add(vectors)
    assert recall(index_of(storage, graph).search(vectors[:50], 1)[1], np.arange(50)[:, None]) > 0.5


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_walks_over_arbitrary_rows_stay_in_bounds(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 12))
    small = st.integers(0, count + 1)
    levels = data.draw(st.lists(st.lists(small, max_size=4), max_size=3))
    ids = [*range(count), *(i for level in levels for i in level)]
    offsets = [0, count]
    for level in levels:
        offsets.append(offsets[-1] + len(level))
    neighbors = [data.draw(st.lists(small, max_size=5)) for _ in ids]
    rows = graph_rows(build_graph(clustered(1), "l2"), clustered(1), "l2")
    metadata = replace(rows.metadata, entry_point=data.draw(small), level_offsets=tuple(offsets))
    try:
        graph = read_graph(
            metadata, pa.array(ids, pa.uint32()), pa.array(neighbors, pa.list_(pa.uint32())), count, where=""
        )
    except LanceDuckError:
        return
    check_is_closed(graph)
    storage = flat_storage(DIM, "l2")
    storage.add(clustered(count))
    found = index_of(storage, graph).search(clustered(2, seed=1), 5)[1]
    assert ((found >= -1) & (found < count)).all()


def check_is_closed(graph: Graph) -> None:
    """No walk over it leaves the arrays."""
    assert graph.offsets[-1] == len(graph.neighbors)
    assert len(graph.offsets) == graph.num_vectors + 1
    assert (graph.neighbors < graph.num_vectors).all()
    assert graph.levels.max(initial=0) <= len(graph.room) - 1
    for vector, count in enumerate(graph.levels):
        for level in range(count):
            start = int(graph.offsets[vector]) + graph.room[level]
            near = graph.neighbors[start : int(graph.offsets[vector]) + graph.room[level + 1]]
            assert (graph.levels[near[near >= 0]] > level).all()


def test_hamming_distances_equal_distances_of_unpacked_bits() -> None:
    bits = np.random.default_rng(0).integers(0, 256, (20, 3)).astype(np.uint8)
    numbers, metric = points(bits, "hamming")
    assert metric == "l2"
    np.testing.assert_array_equal(distances(metric, numbers, numbers), distances("hamming", bits, bits))
