"""Vector indexes, described, dropped, brought up to date and compacted by one, read by the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:lance")

DIM = 8
KINDS = ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
HOW = {"num_partitions": 2, "num_sub_vectors": 4, "max_iters": 4}
ALL = {"nprobes": 20, "refine_factor": 30, "ef": 200}


@pytest.fixture(autouse=True)
def _figures_without_centroids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_INCLUDE_VECTOR_CENTROIDS", "false")


def vectors(first: int, count: int) -> np.ndarray:
    return np.random.default_rng(first).standard_normal((count, DIM)).astype(np.float32)


def rows(first: int, count: int) -> pa.Table:
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors(first, count).ravel()), DIM)
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "vec": array})


def write(path: Path, writer: Any = lance, **options: Any) -> Any:
    return writer.write_dataset(rows(0, 300), path, max_rows_per_file=100, **options)


def ids(dataset: Any, query: np.ndarray, k: int = 5) -> list[int]:
    found = dataset.to_table(columns=["id"], nearest={"column": "vec", "q": query, "k": k, **ALL})
    return found["id"].to_pylist()


def check(path: Path, covered: list[int] | None = None) -> None:
    """Check that both libraries agree with a full comparison and have the expected coverage."""
    ours, theirs = ld.dataset(path), lance.dataset(path)
    table = ours.to_table(columns=["id", "vec"])
    all_ids = table["id"].to_numpy()
    all_vectors = np.stack(table["vec"].to_numpy(zero_copy_only=False))
    for place in range(0, len(all_ids), 41):
        query = all_vectors[place]
        expected = all_ids[np.argsort(((all_vectors - query) ** 2).sum(axis=1))[:5]].tolist()
        for dataset in (ours, theirs):
            found = ids(dataset, query)
            assert found[0] == expected[0]
            assert len(set(found)) == 5
            assert len(set(found) & set(expected)) >= 4
    if covered is not None:
        figures = ours.index_statistics("vec_idx")
        assert sorted(figures["num_indexed_rows_per_delta"]) == sorted(covered)
    assert told(ours) == told(theirs)
    ours.validate()


def told(dataset: Any) -> list[Any]:
    """Return all index metadata of a table, without file names."""
    statistics = getattr(dataset, "index_statistics", None) or dataset.stats.index_stats
    found: list[Any] = []
    for index in dataset.describe_indices():
        figures = json.loads(json.dumps(statistics(index.name), default=str))
        for segment in (*figures["indices"], *figures["segments"]):
            segment["uri"] = str(segment.get("uri")).rpartition("_indices/")[2]
        found.append((index.name, index.index_type, index.details, index.num_rows_indexed, figures))
    listed = [{**one, "fragment_ids": sorted(one["fragment_ids"])} for one in dataset.list_indices()]
    return [*found, *sorted(listed, key=lambda one: one["uuid"])]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_every_pylance_index_kind_is_described_like_in_pylance(tmp_path: Path, metric: str) -> None:
    theirs = write(tmp_path / "t.lance")
    for kind in KINDS:
        theirs.create_index("vec", kind, name=kind, metric=metric, **HOW)
    theirs.create_index("vec", "IVF_PQ", name="untrained", metric=metric, train=False, **HOW)
    ours = ld.dataset(tmp_path / "t.lance")
    assert told(ours) == told(theirs)
    assert {i["name"]: i["type"] for i in ours.list_indices()}["IVF_RQ"] == "IVF_RQ"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("maker", [lance, ld], ids=["pylance", "ours"])
def test_both_libraries_maintain_one_vector_index(tmp_path: Path, kind: str, maker: Any) -> None:
    path = tmp_path / "t.lance"
    write(path, maker).create_index("vec", kind, **HOW)
    check(path, [300])
    ld.dataset(path).insert(rows(300, 60))
    check(path, [300])
    ld.dataset(path).optimize.optimize_indices(num_indices_to_merge=0)
    check(path, [300, 60])
    lance.dataset(path).insert(rows(400, 60))
    ld.dataset(path).delete("id % 7 = 1")
    ld.dataset(path).optimize.optimize_indices(num_indices_to_merge=2)
    check(path)
    assert len(ld.dataset(path).list_indices()) == 1
    lance.dataset(path).insert(rows(500, 30))
    lance.dataset(path).optimize.optimize_indices()
    check(path)
    ld.dataset(path).optimize.optimize_indices(retrain=True)
    check(path, [ld.dataset(path).count_rows()])


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
def test_moved_rows_are_found(tmp_path: Path, kind: str, stable: bool) -> None:
    path = tmp_path / "t.lance"
    write(path, ld, enable_stable_row_ids=stable).create_index("vec", kind, **HOW)
    ld.dataset(path).delete("id % 10 = 3")
    ld.dataset(path).optimize.compact_files()
    dataset = ld.dataset(path)
    assert len(dataset.get_fragments()) == 1
    assert dataset.index_statistics("vec_idx")["num_unindexed_rows"] == 0
    assert "__lance_frag_reuse" not in [i.name for i in dataset.handle.snapshot.indices]
    check(path, [270])
    if not stable:
        dataset.insert(rows(300, 30))
        dataset.optimize.compact_files(defer_index_remap=True)
        check(path)


@pytest.mark.parametrize("stable", [False, True])
def test_changed_vectors_are_found_by_their_new_values(tmp_path: Path, stable: bool) -> None:
    path = tmp_path / "t.lance"
    write(path, ld, enable_stable_row_ids=stable).create_index("vec", "IVF_PQ", **HOW)
    changed = rows(0, 20).set_column(1, "vec", rows(900, 20)["vec"])
    ld.dataset(path).merge_insert("id").when_matched_update_all().execute(changed)
    check(path)
    ld.dataset(path).optimize.optimize_indices()
    check(path)
    assert ld.dataset(path).index_statistics("vec_idx")["num_unindexed_rows"] == 0


def test_an_index_left_untrained_by_pylance_is_built(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(path).create_index("vec", "IVF_SQ", metric="cosine", train=False, **HOW)
    ld.dataset(path).optimize.optimize_indices()
    (index,) = lance.dataset(path).describe_indices()
    assert (index.index_type, index.num_rows_indexed, index.details["metric_type"]) == ("IVF_SQ", 300, "COSINE")


def test_pylance_trains_an_index_created_untrained(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(path, ld).create_index("vec", "IVF_PQ", train=False, **HOW)
    assert told(ld.dataset(path)) == told(lance.dataset(path))
    lance.dataset(path).optimize.optimize_indices()
    check(path, [300])


def test_segments_built_separately_by_both_libraries_commit_together(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    write(path, ld)
    model = {"ivf_centroids": vectors(7, 2), "pq_codebook": np.stack([vectors(8 + i, 256)[:, :2] for i in range(4)])}
    arguments = {"num_partitions": 2, "num_sub_vectors": 4, **model}
    ours = ld.dataset(path)
    parts = [
        ours.create_index_uncommitted("vec", "IVF_PQ", name="vec_idx", fragment_ids=[i], **arguments) for i in (0, 1)
    ]
    merged = ours.merge_existing_index_segments(parts)
    last = ours.create_index_uncommitted("vec", "IVF_PQ", name="vec_idx", fragment_ids=[2], **arguments)
    ours.commit_existing_index_segments("vec_idx", "vec", [merged, last])
    check(path, [200, 100])


def test_pq_segments_with_different_codebooks_merge_into_one(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ours = write(path, ld)
    parts = [ours.create_index_uncommitted("vec", "IVF_PQ", fragment_ids=[i], num_bits=4, **HOW) for i in range(3)]
    ours.commit_existing_index_segments("vec_idx", "vec", parts)
    check(path, [100, 100, 100])
    ours.optimize.optimize_indices(num_indices_to_merge=3)
    check(path, [300])


@pytest.mark.parametrize("maker", [lance, ld], ids=["pylance", "ours"])
def test_both_libraries_drop_each_others_index(tmp_path: Path, maker: Any) -> None:
    path = tmp_path / "t.lance"
    write(path, maker).create_index("vec", "IVF_FLAT", **HOW)
    other = ld.dataset(path) if maker is lance else lance.dataset(path)
    other.drop_index("vec_idx")
    assert ld.dataset(path).list_indices() == lance.dataset(path).list_indices() == []
    check(path)
