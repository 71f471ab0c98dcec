"""Vector graphs written by one library and searched by both find the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader
from unit.index.plain import indexed, rows_of

from lance_duck.index.build import build_segment
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import BuildOptions
from lance_duck.index.search import open_index
from lance_duck.index.vector import build
from lance_duck.index.vector.graph.rows import GRAPH_SCHEMA, METADATA_KEY
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.search.graphs import GraphIndex
from lance_duck.snapshot import Snapshot, open_snapshot

ROWS, DIM, K, EF = 4000, 32, 10, 40
QUICK = {"ef_construction": 60, "max_iters": 10}

KINDS = pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"])
METRICS = pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])


def made() -> tuple[np.ndarray, np.ndarray]:
    """Vectors in clusters that overlap, and queries among them."""
    random = np.random.default_rng(3)
    centers = random.normal(size=(40, DIM))
    found = centers[random.integers(40, size=ROWS + 40)] + 0.7 * random.normal(size=(ROWS + 40, DIM))
    return found[:ROWS].astype(np.float32), found[ROWS:].astype(np.float32)


VECTORS, QUERIES = made()


def parameters(kind: str) -> dict[str, Any]:
    return QUICK | ({"num_sub_vectors": 8} if kind.endswith("PQ") else {})


def table_at(uri: str) -> lance.LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.reshape(-1)), DIM)
    return lance.write_dataset(pa.table({"id": np.arange(ROWS), "v": vectors}), uri)


def segment_of(snapshot: Snapshot) -> Segment:
    ((segment,),) = (index.segments for index in catalog(snapshot))
    return segment


def our_index(uri: str) -> GraphIndex:
    snapshot = open_snapshot(uri)
    index: Any = open_index(snapshot, segment_of(snapshot))
    assert isinstance(index, GraphIndex)
    return index


def ours(index: GraphIndex, nprobes: int) -> np.ndarray:
    hits = index.search(QUERIES, K, None, Probe(nprobes=nprobes, ef=EF))
    return index.rows()[hits.positions]


def theirs(uri: str, nprobes: int) -> np.ndarray:
    dataset = lance.dataset(uri)
    found = []
    for query in QUERIES:
        nearest = {"column": "v", "q": query, "k": K, "nprobes": nprobes, "ef": EF}
        found.append(dataset.to_table(columns=["_distance"], with_row_id=True, nearest=nearest)["_rowid"].to_numpy())
    return np.stack(found)


def recall(found: np.ndarray, metric: str) -> float:
    truth = np.argsort(distances(metric, QUERIES, VECTORS), axis=1)[:, :K]
    return float(np.mean([len(set(a) & set(b)) / K for a, b in zip(found.tolist(), truth.tolist(), strict=True)]))


@KINDS
@METRICS
def test_pylance_graphs_reach_the_same_recall(tmp_path: Path, kind: str, metric: str) -> None:
    uri = str(tmp_path / "t.lance")
    table_at(uri).create_index("v", kind, metric=metric, num_partitions=3, **parameters(kind))
    index = our_index(uri)
    for nprobes in (1, 3):
        here, there = recall(ours(index, nprobes), metric), recall(theirs(uri, nprobes), metric)
        assert here >= there - 0.02, nprobes
        assert there > 0.3


@KINDS
@METRICS
def test_pylance_searches_graphs_built_by_lance_duck(tmp_path: Path, kind: str, metric: str) -> None:
    uri = str(tmp_path / "t.lance")
    table_at(uri)
    snapshot = open_snapshot(uri)
    options = BuildOptions({"index_type": kind, "metric": metric, "num_partitions": 3, **parameters(kind)})
    rows = rows_of(snapshot, "v", [0], by_id=False)
    indexed(snapshot, build_segment(snapshot, "v", VECTOR, rows, [0], name="v_idx", options=options))
    (described,) = lance.dataset(uri).describe_indices()
    assert (described.index_type, described.num_rows_indexed) == (kind, ROWS)
    index = our_index(uri)
    for nprobes in (1, 3):
        here, there = recall(ours(index, nprobes), metric), recall(theirs(uri, nprobes), metric)
        assert abs(here - there) <= 0.02, nprobes
        assert there > 0.3


@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_pylance_searches_joined_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str) -> None:
    monkeypatch.setattr(build, "JOINED", 1000)
    uri = str(tmp_path / "t.lance")
    table_at(uri)
    snapshot = open_snapshot(uri)
    options = BuildOptions({"index_type": "IVF_HNSW_SQ", "metric": metric, "num_partitions": 1, **QUICK})
    rows = rows_of(snapshot, "v", [0], by_id=False)
    indexed(snapshot, build_segment(snapshot, "v", VECTOR, rows, [0], name="v_idx", options=options))
    here, there = recall(ours(our_index(uri), 1), metric), recall(theirs(uri, 1), metric)
    assert abs(here - there) <= 0.02
    assert there > 0.9


def test_graphs_have_the_same_schema_levels_and_degree(tmp_path: Path) -> None:
    """Schema, metadata, levels and the number of neighbours; the graphs themselves differ."""
    theirs, ours = str(tmp_path / "theirs.lance"), str(tmp_path / "ours.lance")
    table_at(theirs).create_index("v", "IVF_HNSW_FLAT", metric="l2", num_partitions=1)
    table_at(ours)
    snapshot = open_snapshot(ours)
    options = BuildOptions({"index_type": "IVF_HNSW_FLAT", "metric": "l2", "num_partitions": 1})
    rows = rows_of(snapshot, "v", [0], by_id=False)
    indexed(snapshot, build_segment(snapshot, "v", VECTOR, rows, [0], name="v_idx", options=options))
    expected, found = graph_file(theirs), graph_file(ours)
    assert found.metadata().schema == expected.metadata().schema.with_metadata(found.metadata().schema.metadata)
    assert found.metadata().schema.remove_metadata() == GRAPH_SCHEMA
    assert found.metadata().schema.metadata.keys() == expected.metadata().schema.metadata.keys()
    (their_graph,), (our_graph,) = graphs(expected), graphs(found)
    assert our_graph["params"] == their_graph["params"]
    assert our_graph.keys() == their_graph.keys()
    assert len(our_graph["level_offsets"]) == len(their_graph["level_offsets"])
    near, far = (file.read_all().to_table().slice(0, ROWS)["__neighbors"] for file in (expected, found))
    counts = [np.array([len(row) for row in column.to_pylist()]) for column in (near, far)]
    assert all(count.max() <= 40 for count in counts)


def graph_file(uri: str) -> LanceFileReader:
    (path,) = Path(uri).glob("*/*/index.idx")
    return LanceFileReader(str(path))


def graphs(file: LanceFileReader) -> list[dict[str, Any]]:
    text = file.metadata().schema.metadata[METADATA_KEY.encode()]
    return [json.loads(part) for part in json.loads(text)]
