"""Vector indexes, made, listed, described, dropped and brought up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    IndexExistsError,
    InvalidInputError,
    NotIndexableError,
    UnknownColumnError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.index.vector.training import imbalance

DIM = 8
KINDS = ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
TWO = {"num_partitions": 2, "num_sub_vectors": 4, "max_iters": 4}


def vectors(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)


def rows(count: int, first: int = 0) -> pa.Table:
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors(count, first).ravel()), DIM)
    bits = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(count * DIM, dtype=np.uint8)), DIM)
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "vec": array, "bits": bits})


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(rows(300), tmp_path / "t.lance", max_rows_per_file=100)


def nearest(dataset: ld.LanceDataset, query: np.ndarray, k: int = 3, **more: Any) -> list[int]:
    found = dataset.to_table(columns=["id"], nearest={"column": "vec", "q": query, "k": k, "nprobes": 100, **more})
    return found["id"].to_pylist()


def per_segment(dataset: ld.LanceDataset, name: str = "vec_idx") -> list[int]:
    return dataset.index_statistics(name)["num_indexed_rows_per_delta"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_of_each_kind_covers_and_finds_all_rows(table: ld.LanceDataset, kind: str) -> None:
    assert table.create_index("vec", kind.lower(), **TWO) is table
    (listed,) = table.list_indices()
    assert (listed["name"], listed["type"], listed["fragment_ids"]) == ("vec_idx", kind, {0, 1, 2})
    figures = table.index_statistics("vec_idx")
    assert (figures["index_type"], figures["num_indexed_rows"], figures["num_unindexed_rows"]) == (kind, 300, 0)
    (segment,) = figures["indices"]
    assert segment["metric_type"] == "l2"
    assert sum(part["size"] for part in segment["partitions"]) == 300
    assert nearest(table, vectors(300)[123], refine_factor=20, ef=100)[0] == 123
    table.prewarm_index("vec_idx")


def test_details_describe_how_an_index_was_built(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_HNSW_PQ", metric="Cosine", m=6, ef_construction=40, max_level=3, **TWO)
    (index,) = table.describe_indices()
    hints = index.details.pop("runtime_hints")
    assert index.details == {
        "metric_type": "COSINE",
        "hnsw": {"max_connections": 6, "construction_ef": 40, "max_level": 3},
        "compression": {"type": "pq", "num_bits": 8, "num_sub_vectors": 4},
    }
    assert hints["lance.ivf.max_iters"] == "4"


def test_byte_vectors_are_compared_by_hamming_distance(table: ld.LanceDataset) -> None:
    table.create_index("bits", "IVF_FLAT", metric="hamming", num_partitions=2)
    assert table.index_statistics("bits_idx")["indices"][0]["metric_type"] == "hamming"
    with pytest.raises(ValueError, match="hamming"):
        table.create_index("bits", "IVF_FLAT", num_partitions=2)


def test_custom_centroids_and_codebooks_are_used(table: ld.LanceDataset) -> None:
    centroids = vectors(3, seed=5)
    codebook = np.random.default_rng(1).standard_normal((2, 256, DIM // 2))
    arrow = pa.FixedSizeListArray.from_arrays(pa.array(centroids.ravel()), DIM)
    table.create_index("vec", "IVF_PQ", ivf_centroids=arrow, pq_codebook=codebook, num_sub_vectors=2)
    figures = table.index_statistics("vec_idx")["indices"][0]
    expected = np.argmin(((vectors(300)[:, None] - centroids) ** 2).sum(-1), axis=1)
    assert [part["size"] for part in figures["partitions"]] == np.bincount(expected, minlength=3).tolist()


def test_index_names_must_be_unique(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_FLAT", num_partitions=1)
    with pytest.raises(IndexExistsError, match="vec_idx"):
        table.create_index("vec", "IVF_SQ", num_partitions=1)
    table.create_index("vec", "IVF_SQ", replace=True, num_partitions=1)
    table.create_index("vec", "IVF_FLAT", "other", num_partitions=1)
    assert {i["name"]: i["type"] for i in table.list_indices()} == {"vec_idx": "IVF_SQ", "other": "IVF_FLAT"}
    table.drop_index("other")
    assert [i["name"] for i in table.list_indices()] == ["vec_idx"]


@pytest.mark.parametrize(
    ("column", "kind", "arguments", "error"),
    [
        ("nope", "IVF_FLAT", {}, UnknownColumnError),
        ("id", "IVF_FLAT", {}, NotIndexableError),
        ("id", "BTREE", {}, TypeError),
        ("vec", "BTREE", {}, NotImplementedError),
        ("vec", "IVF_HNSW_RQ", {}, NotImplementedError),
        ("vec", "IVF_XX", {}, NotImplementedError),
        (["vec", "id"], "IVF_FLAT", {}, TypeError),
        ("vec", "IVF_FLAT", {"metric": "far"}, InvalidInputError),
        ("vec", "IVF_FLAT", {"metric": "hamming"}, ValueError),
        ("vec", "IVF_FLAT", {"num_partitions": 0}, InvalidInputError),
        ("vec", "IVF_FLAT", {"num_partitions": "2"}, WrongTypeError),
        ("vec", "IVF_FLAT", {"num_partitions": 2.5}, InvalidInputError),
        ("vec", "IVF_PQ", {"num_sub_vectors": 5}, ValueError),
        ("vec", "IVF_PQ", {"num_bits": 5}, ValueError),
        ("vec", "IVF_SQ", {"num_bits": 4}, ValueError),
        ("vec", "IVF_FLAT", {"ivf_centroids": np.zeros((2, 5))}, ValueError),
        ("vec", "IVF_FLAT", {"ivf_centroids": np.zeros((3, DIM)), "num_partitions": 2}, ValueError),
        ("vec", "IVF_FLAT", {"ivf_centroids": np.full((2, DIM), np.nan)}, ValueError),
        ("vec", "IVF_PQ", {"pq_codebook": np.zeros((2, 256, 4))}, ValueError),
        ("vec", "IVF_FLAT", {"speed": 3}, InvalidInputError),
        ("vec", "IVF_FLAT", {"accelerator": "cuda"}, UnsupportedError),
        ("vec", "IVF_FLAT", {"precomputed_partition_dataset": "x"}, UnsupportedError),
        ("vec", "IVF_FLAT", {"ivf_centroids_file": "x"}, UnsupportedError),
        ("vec", "IVF_PQ", {"skip_transpose": True}, UnsupportedError),
        ("vec", "IVF_PQ", {"index_file_version": "LEGACY"}, UnsupportedError),
        ("vec", "IVF_FLAT", {"fragment_ids": [0]}, InvalidInputError),
        ("vec", "IVF_FLAT", {"index_uuid": "x"}, ValueError),
    ],
)
def test_invalid_arguments_are_rejected_without_changes(
    table: ld.LanceDataset, column: Any, kind: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        table.create_index(column, kind, **arguments)
    assert isinstance(caught.value, ld.LanceDuckError)
    assert (table.version, table.list_indices()) == (1, [])


def test_parameters_of_other_kinds_are_ignored(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_FLAT", num_partitions=2.0, num_sub_vectors=4, m=3, filter_nan=False)
    assert table.index_statistics("vec_idx")["indices"][0]["num_partitions"] == 2


def test_an_untrained_index_covers_nothing_until_optimize(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_SQ", train=False, metric="dot")
    (index,) = table.describe_indices()
    assert (index.index_type, index.num_rows_indexed, index.details["metric_type"]) == ("IVF_SQ", 0, "DOT")
    assert table.index_statistics("vec_idx")["index_type"] == "N/A"
    assert len(nearest(table, vectors(1)[0])) == 3
    table.optimize.optimize_indices()
    figures = table.index_statistics("vec_idx")
    assert (figures["index_type"], figures["num_indexed_rows"]) == ("IVF_SQ", 300)
    assert figures["indices"][0]["metric_type"] == "dot"


def test_an_index_on_an_empty_table_covers_nothing(tmp_path: Path) -> None:
    dataset = ld.write_dataset(rows(1).schema.empty_table(), tmp_path / "t.lance")
    dataset.create_index("vec", "IVF_FLAT")
    dataset.insert(rows(20))
    dataset.optimize.optimize_indices()
    assert per_segment(dataset) == [20]


def test_progress_reports_indexed_rows(table: ld.LanceDataset) -> None:
    steps: list[tuple[int, int]] = []
    table.create_index("vec", "IVF_FLAT", num_partitions=2, progress=lambda done, total: steps.append((done, total)))
    assert (steps[0], steps[-1]) == ((0, 300), (300, 300))


def test_progress_is_reported_during_graph_construction(table: ld.LanceDataset) -> None:
    steps: list[int] = []
    table.create_index("vec", "IVF_HNSW_SQ", **TWO, progress=lambda done, total: steps.append(done))
    assert steps == sorted(steps)
    assert steps[-1] == 300
    assert [step for step in steps if 30 < step < 300]


def test_progress_is_shown_to_people(table: ld.LanceDataset, capsys: pytest.CaptureFixture[str]) -> None:
    table.create_index("vec", "IVF_FLAT", num_partitions=2, progress=True)
    assert capsys.readouterr().err.endswith("\r300 of 300 rows \n")
    table.optimize.optimize_indices(progress=True)
    with pytest.raises(InvalidInputError, match="progress"):
        table.create_index("vec", "IVF_FLAT", replace=True, progress=3)  # type: ignore[arg-type]


def test_segments_built_separately_are_committed_as_one_index(table: ld.LanceDataset) -> None:
    given = {"ivf_centroids": vectors(2, seed=3)}
    uuid = uuid4()
    parts = [
        table.create_index_uncommitted("vec", "IVF_FLAT", fragment_ids=[0, 1], index_uuid=uuid, **given),
        table.create_index_uncommitted("vec", "IVF_FLAT", fragment_ids=[2], **given),
    ]
    assert parts[0].uuid == str(uuid)
    assert table.version == 1
    table.commit_existing_index_segments("vec_idx", "vec", parts)
    assert sorted(per_segment(table)) == [100, 200]
    for row in (5, 250):
        assert nearest(table, vectors(300)[row])[0] == row


def test_vectors_updated_in_place_leave_the_index_until_optimize(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_HNSW_SQ", **TWO)
    table.create_scalar_index("id", "BTREE")
    fragment = table.get_fragments()[1]
    changed = rows(100, 900).select(["vec"]).append_column("_rowid", fragment.to_table(with_row_id=True)["_rowid"])
    metadata, fields = fragment.update_columns(changed, left_on="_rowid", right_on="_rowid")
    operation = ld.LanceOperation.Update(updated_fragments=[metadata], fields_modified=fields)
    now = ld.LanceDataset.commit(table.uri, operation, read_version=table.version)
    query = vectors(100, 900)[17]
    for covered in (200, 300):
        assert now.index_statistics("vec_idx")["num_indexed_rows"] == covered
        assert nearest(now, query, refine_factor=20, ef=100)[0] == 117
        assert now.count_rows("id = 117") == 1
        now.optimize.optimize_indices()
    now.validate()


def partitions(dataset: ld.LanceDataset) -> list[int]:
    return [segment["num_partitions"] for segment in dataset.index_statistics("vec_idx")["indices"]]


def test_the_requested_partition_count_is_kept(table: ld.LanceDataset) -> None:
    table.create_index("vec", "IVF_FLAT", **TWO)
    table.insert(rows(50, 300))
    table.optimize.optimize_indices(num_indices_to_merge=1)
    assert (per_segment(table), partitions(table)) == ([350], [2])
    table.optimize.optimize_indices(retrain=True)
    assert partitions(table) == [2]
    table.create_index("vec", "IVF_FLAT", replace=True)
    table.optimize.optimize_indices(retrain=True)
    assert partitions(table) == [1]


def test_an_index_with_uneven_partitions_is_retrained(table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imbalance, "LARGE", 100)
    table.create_index("vec", "IVF_FLAT", num_partitions=16)
    near = pa.FixedSizeListArray.from_arrays(pa.array((9 + 0.1 * vectors(900)).ravel()), DIM)
    table.insert(rows(900, 300).set_column(1, "vec", near))
    table.optimize.optimize_indices()
    assert max(table.index_statistics("vec_idx")["indices"][0]["partitions"], key=lambda p: p["size"])["size"] >= 900
    table.insert(rows(10, 1200))
    table.optimize.optimize_indices()
    (segment,) = table.index_statistics("vec_idx")["indices"]
    sizes = [part["size"] for part in segment["partitions"]]
    assert (len(sizes), sum(sizes)) == (16, 1210)
    assert max(sizes) < 400


@pytest.mark.parametrize(
    ("kind", "arguments", "count", "remedy"),
    [
        ("IVF_PQ", {"num_sub_vectors": 4}, 255, "num_bits=4 needs 16; IVF_SQ needs one"),
        ("IVF_PQ", {"num_sub_vectors": 1}, 255, "IVF_SQ needs one"),
        ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 4}, 15, "IVF_SQ needs one"),
        ("IVF_HNSW_PQ", {"num_sub_vectors": 4}, 15, "IVF_HNSW_SQ needs one"),
    ],
)
def test_too_few_training_vectors_are_rejected_with_a_remedy(
    tmp_path: Path, kind: str, arguments: dict[str, Any], count: int, remedy: str
) -> None:
    dataset = ld.write_dataset(rows(count), tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match=f"found {count}; {remedy}.*train=False"):
        dataset.create_index("vec", kind, **arguments)
    assert (dataset.version, dataset.list_indices()) == (1, [])


def test_an_index_with_too_few_vectors_waits_and_others_are_optimized(tmp_path: Path) -> None:
    dataset = ld.write_dataset(rows(100), tmp_path / "t.lance")
    dataset.create_index("vec", "IVF_PQ", train=False, **TWO)
    dataset.create_scalar_index("id", "BTREE")
    dataset.insert(rows(100, 100))
    with pytest.warns(ld.errors.IndexWarning, match="'vec_idx' was not changed: too few vectors"):
        dataset.optimize.optimize_indices()
    assert dataset.index_statistics("id_idx")["num_unindexed_rows"] == 0
    dataset.insert(rows(100, 200))
    dataset.optimize.optimize_indices()
    assert (per_segment(dataset), partitions(dataset)) == ([300], [2])
