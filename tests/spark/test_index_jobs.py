"""Distributed index builds equal those of one machine in coverage and answers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.upkeep import DIM, centroids, coverage, make, orphans, pylance, rows, same_rows, twins

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import (
    CorruptError,
    IndexExistsError,
    IndexWarning,
    InvalidInputError,
    NotFoundError,
    NotIndexableError,
    UnknownColumnError,
)
from lance_duck.verbs.indexes import training

SLOW = pytest.mark.slow
FILTERS = ("k = 5", "k BETWEEN 3 AND 9", "k IS NULL", "s = 's3'", "array_has_any(l, [4])", "k = 5 AND s = 's1'")


def nearest(dataset: Any, **options: Any) -> list[int]:
    query = np.linspace(-1, 1, DIM).astype(np.float32)
    found = dataset.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": 10, **options})
    return found["id"].to_pylist()


@pytest.mark.parametrize("stable", [pytest.param(False, marks=SLOW), True])
def test_scalar_indexes_equal_those_of_a_single_machine(spark: SparkSession, tmp_path: Path, stable: bool) -> None:
    uri, twin = twins(tmp_path, stable=stable)
    for column, kind, options in [
        ("k", "BTREE", {}),
        ("s", "bitmap", {}),
        ("l", "LABEL_LIST", {}),
        ("id", "ZONEMAP", {"rows_per_zone": 64}),
    ]:
        made = ls.create_index(spark, uri, column, kind, num_segments=2, **options)
        assert (made.name, made.rows, made.segments) == (f"{column}_idx", twin.count_rows(), 2)
        assert made.bytes > 0
        twin.create_scalar_index(column, kind, **options)
    assert coverage(ld.dataset(uri)) == coverage(twin)
    same_rows(uri, twin, *FILTERS, "id < 40")
    plan = pylance(uri).scanner(filter="k = 5").explain_plan()
    assert "ScalarIndexQuery" in plan
    assert orphans(uri) == []


def test_a_distributed_full_text_index_equals_that_of_a_single_machine(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path)
    made = ls.create_index(spark, uri, "s", "FTS", num_segments=2, with_position=True, stem=False)
    twin.create_scalar_index("s", "INVERTED", with_position=True, stem=False)
    assert (made.segments, coverage(ld.dataset(uri))) == (2, coverage(twin))

    def found(dataset: Any) -> dict[int, float]:
        rows = pylance(dataset.uri).to_table(columns=["id", "_score"], full_text_query="s3 s4")
        return dict(zip(rows["id"].to_pylist(), rows["_score"].to_pylist(), strict=True))

    assert found(ld.dataset(uri)) == found(twin) != {}
    ld.dataset(uri).insert(ld.dataset(uri).head(50))
    ls.optimize_indices(spark, uri, index_names=["s_idx"], num_indices_to_merge=0)
    ld.dataset(uri).validate()
    assert ld.dataset(uri).index_statistics("s_idx")["num_unindexed_rows"] == 0


def test_a_bloom_filter_index_is_built_over_each_fragment(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path)
    made = ls.create_index(spark, uri, "s", "BLOOMFILTER", fragments_per_segment=3, number_of_items=500)
    assert made.segments == 3
    same_rows(uri, twin, "s = 's3'", "s = 'nowhere'")


@pytest.mark.parametrize(
    "kind", ["IVF_PQ", *(pytest.param(kind, marks=SLOW) for kind in ("IVF_FLAT", "IVF_SQ", "IVF_HNSW_SQ"))]
)
def test_vector_indexes_are_trained_once_like_on_a_single_machine(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    uri, twin = twins(tmp_path)
    options: dict[str, Any] = {"metric": "cosine", "num_partitions": 4}
    options |= {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    made = ls.create_index(spark, uri, "v", kind, num_segments=2, **options)
    twin.create_index("v", kind, **options)
    dataset = ld.dataset(uri)
    assert (made.segments, coverage(dataset)) == (2, coverage(twin))
    assert centroids(dataset) == centroids(twin) * 2
    if "HNSW" not in kind:
        for probes in (1, 4):
            assert nearest(dataset, nprobes=probes) == nearest(twin, nprobes=probes)
    found = nearest(pylance(uri), nprobes=4, refine_factor=10)
    assert len(set(found) & set(nearest(twin, metric="cosine", use_index=False))) >= 9
    assert "ANNIvf" in pylance(uri).scanner(nearest={"column": "v", "q": [0.5] * DIM, "k": 3}).explain_plan()
    dataset.validate()


@pytest.mark.parametrize("kind", ["IVF_SQ", pytest.param("IVF_PQ", marks=SLOW)])
def test_a_distributed_training_sample_equals_that_of_a_single_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    uri, twin = twins(tmp_path)
    monkeypatch.setattr(training, "WHOLE_SAMPLE_BYTES", 0)
    options: dict[str, Any] = {"num_partitions": 4, "sample_rate": 20, "num_sub_vectors": 4, "num_bits": 4}
    if kind == "IVF_SQ":
        options = {"num_partitions": 4, "sample_rate": 20}
    ls.create_index(spark, uri, "v", kind, num_segments=2, **options)
    twin.create_index("v", kind, **options)
    assert nearest(ld.dataset(uri), nprobes=2) == nearest(twin, nprobes=2)


def test_a_large_training_sample_stays_with_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path)
    made = ls.create_index(spark, uri, "v", "IVF_FLAT", num_partitions=4, memory_limit=1000, max_iters=3)
    dataset = ld.dataset(uri)
    (figures,) = dataset.index_statistics("v_idx")["indices"]
    assert (made.rows, len(figures["partitions"])) == (twin.count_rows(), 4)
    assert min(part["size"] for part in figures["partitions"]) > made.rows / 20
    assert nearest(dataset, nprobes=4) == nearest(twin, use_index=False)
    assert orphans(uri) == []


def test_unusable_vectors_are_in_no_segment(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = rows(400)["v"].combine_chunks().to_pylist()
    vectors = [None if i % 2 else v for i, v in enumerate(vectors)]
    data = pa.table({"id": range(400), "v": pa.array(vectors, pa.list_(pa.float32(), DIM))})
    uri, twin = twins(tmp_path, data=data, fragments=4)
    monkeypatch.setattr(training, "WHOLE_SAMPLE_BYTES", 0)
    ls.create_index(spark, uri, "v", "IVF_FLAT", num_partitions=3, sample_rate=2, num_segments=2)
    assert nearest(ld.dataset(uri), nprobes=3) == nearest(twin, use_index=False)
    with pytest.raises(InvalidInputError, match="too few vectors"):
        ls.create_index(spark, uri, "v", "IVF_PQ", num_sub_vectors=4, name="pq")
    assert orphans(uri) == []


def test_an_index_may_have_no_rows_or_one_fragment(spark: SparkSession, tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    ld.write_dataset(rows(0), empty)
    for column, kind in (("k", "BTREE"), ("v", "IVF_FLAT")):
        assert ls.create_index(spark, empty, column, kind).rows == 0
    assert nearest(ld.dataset(empty)) == []
    one = make(tmp_path / "one", fragments=1)
    assert ls.create_index(spark, one, "k", "BTREE", num_segments=5).segments == 1
    none = make(tmp_path / "none", fragments=2)
    ld.dataset(none).delete("true")
    assert [ls.create_index(spark, none, c, k).rows for c, k in (("k", "BITMAP"), ("v", "IVF_PQ"))] == [0, 0]
    assert ls.create_index(spark, one, "s", "BTREE", train=False).rows == 0


def test_invalid_arguments_are_rejected_before_any_task_runs(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t", fragments=2)
    ld.dataset(uri).create_scalar_index("k", "BTREE")
    before = ld.dataset(uri).version
    for error, column, kind, options in [
        (UnknownColumnError, "nowhere", "BTREE", {}),
        (NotIndexableError, "v", "BTREE", {}),
        (NotIndexableError, "k", "IVF_PQ", {}),
        (NotIndexableError, "k", "NGRAMS", {}),
        (IndexExistsError, "k", "BTREE", {}),
        (IndexExistsError, "s", "BTREE", {"name": "k_idx", "replace": True}),
        (InvalidInputError, "s", "BTREE", {"num_segments": 0}),
        (InvalidInputError, "s", "BTREE", {"num_segments": 1, "fragments_per_segment": 1}),
        (InvalidInputError, "s", "BITMAP", {"nonsense": 1}),
        (InvalidInputError, "v", "IVF_PQ", {"num_sub_vectors": 3}),
    ]:
        with pytest.raises(error):
            ls.create_index(spark, uri, column, kind, **options)
    with pytest.raises(NotFoundError):
        ls.create_index(spark, tmp_path / "nowhere", "k", "BTREE")
    assert ld.dataset(uri).version == before
    assert os.listdir(tmp_path) == ["t"]


def test_a_failed_job_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    before = ld.dataset(uri).version
    victim = ld.dataset(uri).get_fragments()[5].data_files()[0].path
    os.truncate(tmp_path / "t" / "data" / victim, 1000)
    for column, kind in (("k", "BTREE"), ("v", "IVF_FLAT")):
        with pytest.raises(CorruptError):
            ls.create_index(spark, uri, column, kind, num_segments=4)
    assert ld.dataset(uri).version == before
    assert not (tmp_path / "t" / "_indices").exists()


def changed(uri: str, how: Callable[[ld.LanceDataset], Any]) -> Callable[[int, int], None]:
    """Return a progress callback that changes the table after the first segments."""
    done: list[int] = []

    def tell(ended: int, total: int) -> None:
        if ended == total and not done:
            done.append(ended)
            how(ld.dataset(uri))

    return tell


QUICK = {("append", False), ("compaction", True)}
APPEND = "append", lambda dataset: dataset.insert(rows(100, 5000))
DELETE = "delete", lambda dataset: dataset.delete("k = 5")
UPDATE = "update", lambda dataset: dataset.update({"k": "96"}, where="k = 7")
COMPACTION = "compaction", lambda dataset: dataset.optimize.compact_files(target_rows_per_fragment=400)


@pytest.mark.parametrize(
    ("how", "stable"),
    [
        pytest.param(how, stable, id=f"{name}-{stable}", marks=() if (name, stable) in QUICK else SLOW)
        for name, how in (APPEND, DELETE, UPDATE, COMPACTION)
        for stable in (False, True)
    ],
)
def test_a_concurrent_writer_does_not_change_answers(
    spark: SparkSession, tmp_path: Path, how: Callable[[ld.LanceDataset], Any], stable: bool
) -> None:
    uri, twin = twins(tmp_path, stable=stable, fragments=4)
    ls.create_index(spark, uri, "k", "BTREE", num_segments=2, progress=changed(uri, how))
    how(twin)
    same_rows(uri, twin, "k = 5", "k = 7", "k = 96")
    assert coverage(ld.dataset(uri))["k_idx"]
    assert orphans(uri) == []


@pytest.mark.parametrize("stable", [False, pytest.param(True, marks=SLOW)])
def test_new_rows_are_covered_like_on_a_single_machine(spark: SparkSession, tmp_path: Path, stable: bool) -> None:
    uri, twin = twins(tmp_path, stable=stable, fragments=4)
    for dataset in (ld.dataset(uri), twin):
        dataset.create_scalar_index("k", "BTREE")
        dataset.create_scalar_index("s", "BITMAP")
        dataset.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
        dataset.insert(rows(300, 4000))
        dataset.insert(rows(300, 5000))
    merged = ls.optimize_indices(spark, uri, num_segments=1)
    twin.optimize.optimize_indices()
    assert {f.name: f.rows for f in merged} == {name: twin.count_rows() for name in ("k_idx", "s_idx", "v_idx")}
    assert coverage(ld.dataset(uri)) == coverage(twin)
    same_rows(uri, twin, *FILTERS)
    assert nearest(ld.dataset(uri), nprobes=2) == nearest(twin, nprobes=2)
    assert ls.optimize_indices(spark, uri) == []
    assert orphans(uri) == []


def test_many_new_rows_get_several_segments_and_retraining_covers_all(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path, fragments=4)
    for column, kind in (("k", "BTREE"), ("v", "IVF_FLAT")):
        ls.create_index(spark, uri, column, kind, num_segments=2)
    ld.dataset(uri).insert(rows(300, 4000))
    ld.dataset(uri).insert(rows(300, 5000))
    twin.insert(rows(300, 4000))
    twin.insert(rows(300, 5000))
    new = ls.optimize_indices(spark, uri, num_indices_to_merge=0, num_segments=2)
    assert [(f.name, f.rows, f.segments) for f in new] == [("k_idx", 600, 2), ("v_idx", 600, 2)]
    same_rows(uri, twin, "k = 5", "k IS NULL")
    one = ls.optimize_indices(spark, uri, index_names=["k_idx"], num_indices_to_merge=4)
    assert [(f.rows, f.segments) for f in one] == [(twin.count_rows(), 1)]
    anew = ls.optimize_indices(spark, uri, retrain=True, num_segments=3)
    assert sorted((f.name, f.rows, f.segments) for f in anew) == [(n, twin.count_rows(), 3) for n in ("k_idx", "v_idx")]
    same_rows(uri, twin, "k = 5", "k IS NULL")
    assert nearest(ld.dataset(uri), nprobes=9) == nearest(twin, use_index=False)
    assert orphans(uri) == []


def test_an_index_with_too_few_vectors_is_left_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    for dataset in (twin := twins(tmp_path)[1], ld.dataset(tmp_path / "spark.lance")):
        dataset.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
        dataset.delete("id >= 100")
    with pytest.warns(IndexWarning, match="too few vectors to train IVF_PQ"):
        assert ls.optimize_indices(spark, tmp_path / "spark.lance", retrain=True) == []
    with pytest.warns(IndexWarning, match="too few vectors to train IVF_PQ"):
        twin.optimize.optimize_indices(retrain=True)
    assert ld.dataset(tmp_path / "spark.lance").latest_version == twin.latest_version
