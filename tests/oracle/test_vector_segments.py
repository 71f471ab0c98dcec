"""Vector segments that pylance builds: found in them is what pylance finds, at the same distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from support.coarse_codes import rounding_error

import lance_duck as ld
from lance_duck import indices
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.search import open_index
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.search.contract import Probe
from lance_duck.snapshot import Snapshot, open_snapshot

ROWS, DIM, QUERIES, K, PROBES = 4000, 32, 25, 10, 4
STORAGES: list[tuple[str, dict[str, int]]] = [
    ("IVF_FLAT", {}),
    ("IVF_SQ", {}),
    ("IVF_PQ", {"num_sub_vectors": 8}),
    ("IVF_PQ", {"num_sub_vectors": 16, "num_bits": 4}),
]


def vectors(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 2 * rng.normal(size=(20, DIM))
    found = centres[rng.integers(0, 20, rows)] + rng.normal(size=(rows, DIM))
    asked = centres[rng.integers(0, 20, QUERIES)] + rng.normal(size=(QUERIES, DIM))
    return found.astype(np.float32), asked.astype(np.float32)


def column(values: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def segment_of(uri: str) -> tuple[Snapshot, Segment]:
    snapshot = open_snapshot(uri)
    (segment,) = (s for index in catalog(snapshot) if index.path == "v" for s in index.segments)
    return snapshot, segment


def their_neighbours(ds: Any, asked: np.ndarray, metric: str, **more: Any) -> tuple[np.ndarray, np.ndarray]:
    ids, found = [], []
    for query in asked:
        nearest = {"column": "v", "q": query, "k": K, "nprobes": PROBES, "metric": metric}
        table = ds.to_table(nearest=nearest, columns=["_distance"], with_row_id=True, **more)
        ids.append(table["_rowid"].to_numpy())
        found.append(table["_distance"].to_numpy())
    return np.stack(ids), np.stack(found)


def recall(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, exact, strict=True)]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_pylance_indexes_are_searched_with_the_same_recall(metric: str, dtype: type, tmp_path: Path) -> None:
    values, asked = vectors()
    values, asked = values.astype(dtype), asked.astype(np.float16).astype(dtype)
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset({"v": column(values)}, uri)
    exact = distances(metric, asked.astype(np.float32), values.astype(np.float32)).argsort(axis=1)[:, :K]
    for kind, parameters in STORAGES:
        ds.create_index("v", kind, metric=metric, num_partitions=8, replace=True, **parameters)
        snapshot, segment = segment_of(uri)
        index = open_index(snapshot, segment)
        hits = index.search(asked.astype(np.float32), K, None, Probe(PROBES, PROBES))
        ours = index.rows()[hits.positions]
        theirs, their_distances = their_neighbours(ds, asked, metric)
        assert recall(ours, exact) >= recall(theirs, exact) - 0.02, kind
        if kind == "IVF_SQ":  # pylance rounds queries as well, and finds less
            continue
        assert recall(ours, exact) <= recall(theirs, exact) + 0.02, kind
        if metric == "cosine" and kind == "IVF_PQ":  # pylance gives the squared distance of normalised vectors
            their_distances = their_distances / 2
        error, files = 1e-3, index.files
        if index.shape.is_coarse:
            error += rounding_error(files.codebook, files.centroids, metric, asked.astype(np.float32))
        np.testing.assert_allclose(hits.distances, their_distances, rtol=1e-3, atol=error, err_msg=kind)


def test_statistics_and_names_equal_those_of_pylance(tmp_path: Path) -> None:
    values, _ = vectors(1000)
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset({"v": column(values)}, uri)
    for kind, parameters in STORAGES:
        ds.create_index("v", kind, metric="cosine", num_partitions=4, replace=True, **parameters)
        theirs = ds.stats.index_stats("v_idx")
        ours = ld.dataset(uri).stats.index_stats("v_idx")
        assert ours["index_type"] == theirs["index_type"] == kind
        figures = dict(theirs["indices"][0])
        figures.pop("centroids")
        figures.pop("uri")
        assert {name: ours["indices"][0][name] for name in figures} == figures
        assert ld.dataset(uri).list_indices()[0]["type"] == kind


@pytest.mark.parametrize("stable", [False, True])
def test_a_filtered_vector_search_returns_only_matching_rows(stable: bool, tmp_path: Path) -> None:
    values, asked = vectors()
    uri = str(tmp_path / "t.lance")
    data = pa.table({"v": column(values), "x": np.arange(ROWS)})
    ds = lance.write_dataset(data, uri, max_rows_per_file=1000, enable_stable_row_ids=stable)
    ds.create_index("v", "IVF_FLAT", num_partitions=8)
    snapshot, segment = segment_of(uri)
    index = open_index(snapshot, segment)
    x = ds.to_table(columns=["x"], with_row_id=True)
    places = dict(zip(x["_rowid"].to_pylist(), x["x"].to_pylist(), strict=True))
    by_position = np.array([places[r] for r in index.rows().tolist()])
    for share in (2, 100, 2000):
        allowed = by_position % share == 0
        hits = index.search(asked, 2, allowed, Probe(PROBES))
        wanted = distances("l2", asked, values[::share]).argsort(axis=1)[:, :2] * share
        found = by_position[hits.positions]
        assert (found % share == 0).all()
        if share == 2000:
            np.testing.assert_array_equal(np.sort(found), np.sort(wanted))
        else:
            assert recall(np.repeat(found, K // 2, axis=1), np.repeat(wanted, K // 2, axis=1)) > 0.15


def test_vectors_with_null_or_infinite_items_are_not_in_pylance_segments(tmp_path: Path) -> None:
    values, _ = vectors(1000)
    rows: list[Any] = values.tolist()
    rows[5] = [float("nan")] * DIM
    rows[6] = [float("inf")] * DIM
    rows[7] = [0.0] * DIM
    rows[8] = None
    for metric, left_out in (("l2", {5, 6, 8}), ("cosine", {5, 6, 7, 8}), ("dot", {5, 6, 8})):
        uri = str(tmp_path / f"{metric}.lance")
        ds = lance.write_dataset({"v": pa.array(rows, pa.list_(pa.float32(), DIM))}, uri)
        ds.create_index("v", "IVF_FLAT", metric=metric, num_partitions=4)
        snapshot, segment = segment_of(uri)
        assert set(range(1000)) - set(open_index(snapshot, segment).rows().tolist()) == left_out


@pytest.mark.parametrize("bits", [1, 5])
@pytest.mark.parametrize(("metric", "size"), [("l2", 1), ("cosine", 2), ("dot", 1)])
def test_rabitq_distances_equal_those_of_pylance(bits: int, metric: str, size: int, tmp_path: Path) -> None:
    values, asked = vectors(1000)
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset({"v": column(values), "x": np.arange(1000)}, uri)
    ds.create_index("v", "IVF_RQ", num_partitions=4, metric=metric, num_bits=bits)
    snapshot, segment = segment_of(uri)
    index = open_index(snapshot, segment)
    hits = index.search(asked, K, None, Probe(nprobes=4))
    for query, positions, found in zip(asked, hits.positions, hits.distances, strict=True):
        nearest = {"column": "v", "q": query, "k": 1000, "nprobes": 4, "approx_mode": "accurate"}
        table = ds.to_table(nearest=nearest, columns=["_distance"], with_row_id=True)
        theirs = dict(zip(table["_rowid"].to_pylist(), table["_distance"].to_pylist(), strict=True))
        expected = np.array([theirs[row] for row in index.rows()[positions].tolist()]) / size
        spread = np.ptp(table["_distance"].to_numpy()) / size
        if metric != "dot":  # of a near vector a rough estimate may be below zero
            expected = np.maximum(expected, 0)
        differences = np.abs(found - expected) / spread
        if (
            metric == "dot"
        ):  # pylance weighs the centroid in another way, which chance makes far off for one row or other
            assert differences.mean() <= 0.1 / bits
        else:  # queries are rounded
            assert differences.max() <= 0.03


@pytest.mark.parametrize("column", ["l2", "cosine", "dot"])
def test_multi_bit_codes_in_the_golden_table_are_searched_by_both(column: str) -> None:
    uri = str(Path(__file__).parents[1] / "golden" / "tables" / "several_bits.lance")
    for row in range(0, 195, 13):
        vector = ld.dataset(uri).take([row], columns=[column])[column][0].as_py()
        asked = {"column": column, "q": vector, "k": 200, "nprobes": 2}
        ours, theirs = (
            reader(uri).to_table(columns=["id", "_distance"], nearest=asked | more, fast_search=True).to_pydict()
            for reader, more in ((ld.dataset, {}), (lance.dataset, {"approx_mode": "accurate"}))
        )
        assert sorted(ours["id"]) == sorted(theirs["id"])
        found, expected = (np.array(side["_distance"])[np.argsort(side["id"])] for side in (ours, theirs))
        if column == "cosine":
            expected = expected / 2
        if column != "dot":  # of a near vector a rough estimate may be below zero
            expected = np.maximum(expected, 0)
        assert (np.abs(found - expected) / np.ptp(expected)).max() <= 0.03


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("kind", "parameters"), [*STORAGES, ("IVF_HNSW_SQ", {}), ("IVF_RQ", {})])
def test_pylance_searches_a_vector_index_that_compaction_rewrote(
    kind: str, parameters: dict[str, int], stable: bool, tmp_path: Path
) -> None:
    values, _ = vectors(1500)
    uri = str(tmp_path / "t.lance")
    data = pa.table({"x": np.arange(1500), "v": column(values)})
    ds = lance.write_dataset(data, uri, max_rows_per_file=500, enable_stable_row_ids=stable)
    ds.create_index("v", kind, num_partitions=2, **parameters)
    ours = ld.dataset(uri)
    ours.delete("x < 20")
    ours.optimize.compact_files()
    ours.validate()
    (fragment,) = ours.get_fragments()
    covered = {i["name"]: i["fragment_ids"] for i in ours.list_indices()}
    assert covered["v_idx"] == {fragment.fragment_id}
    assert "__lance_frag_reuse" not in covered
    found = []
    for reader in (lance.dataset(uri), ours):
        nearest = {"column": "v", "q": values[300], "k": 5, "nprobes": 2, "refine_factor": 20}
        table = reader.to_table(nearest=nearest, columns=["x", "_distance"])
        found.append(table["x"].to_pylist())
    assert found[0] == found[1]
    assert found[0][0] == 300


def test_index_models_are_read_by_both_libraries(tmp_path: Path) -> None:
    vectors = np.random.default_rng(5).normal(size=(600, 8)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 8)
    uri = str(tmp_path / "t.lance")
    table = ld.write_dataset(pa.table({"v": column}), uri)
    sides = ((indices, table), (lance.indices, lance.dataset(uri)))
    for (mine, data), (theirs, _) in (sides, sides[::-1]):
        builder = mine.IndicesBuilder(data, "v")
        ivf = builder.train_ivf(4, sample_rate=16)
        pq = builder.train_pq(ivf, 2, sample_rate=2)
        ivf.save(str(tmp_path / "ivf.lance"))
        pq.save(str(tmp_path / "pq.lance"))
        read = theirs.IvfModel.load(str(tmp_path / "ivf.lance"))
        assert (read.centroids, read.distance_type) == (ivf.centroids, "l2")
        codes = theirs.PqModel.load(str(tmp_path / "pq.lance"))
        assert (codes.codebook, codes.num_subvectors, codes.num_bits) == (pq.codebook, 2, 8)
