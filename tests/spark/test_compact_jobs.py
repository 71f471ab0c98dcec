"""Distributed compaction and cleanup equal the single-machine verbs, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from spark.upkeep import coverage, make, orphans, rows, same_rows, twins

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, ReferencedError
from lance_duck.spark.verbs import cleanup_jobs

SLOW = pytest.mark.slow


def sizes(dataset: ld.LanceDataset) -> list[int]:
    return [fragment.count_rows() for fragment in dataset.get_fragments()]


@pytest.mark.parametrize("stable", [False, pytest.param(True, marks=SLOW)])
def test_rows_and_indexes_equal_those_of_a_single_machine(spark: SparkSession, tmp_path: Path, stable: bool) -> None:
    uri, twin = twins(tmp_path, stable=stable)
    for dataset in (ld.dataset(uri), twin):
        dataset.create_scalar_index("k", "BTREE")
        dataset.create_index("v", "IVF_FLAT", num_partitions=2)
        dataset.insert(rows(50, 4000))
        dataset.insert(rows(50, 5000))
    told: list[tuple[int, int]] = []
    done = ls.compact(spark, uri, target_rows_per_fragment=400, groups_per_commit=2, progress=lambda *n: told.append(n))
    metrics = twin.optimize.compact_files(target_rows_per_fragment=400)
    assert {name: getattr(done, name) for name in vars(metrics)} == vars(metrics)
    assert (done.commits, done.planned_again, told[-1]) == (2, 0, (3, 3))
    assert done.version == ld.dataset(uri).version
    assert sizes(ld.dataset(uri)) == sizes(twin)
    assert [len(ids) for ids in coverage(ld.dataset(uri)).values()] == [len(i) for i in coverage(twin).values()]
    same_rows(uri, twin, "k = 5", "k IS NULL")
    assert orphans(uri) == []
    again = ls.compact(spark, uri, target_rows_per_fragment=400)
    assert (again.fragments_removed, again.commits) == (0, 0)


def test_a_plan_is_bounded(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path)
    options = {"target_rows_per_fragment": 300, "max_source_fragments": 5}
    done = ls.compact(spark, uri, **options)
    twin.optimize.compact_files(**options)
    assert 0 < done.fragments_removed <= 5
    assert sizes(ld.dataset(uri)) == sizes(twin)
    same_rows(uri, twin)


def test_an_empty_table_and_bad_arguments(spark: SparkSession, tmp_path: Path) -> None:
    ld.write_dataset(rows(0), tmp_path / "t")
    assert ls.compact(spark, tmp_path / "t").commits == 0
    with pytest.raises(InvalidInputError, match="unknown option 'target'"):
        ls.compact(spark, tmp_path / "t", target=1)
    with pytest.raises(InvalidInputError, match="groups_per_commit"):
        ls.compact(spark, tmp_path / "t", groups_per_commit=0)
    with pytest.raises(NotFoundError):
        ls.compact(spark, tmp_path / "nowhere")


def test_a_failed_job_keeps_committed_groups_and_leaves_no_orphans(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t")
    before = ld.dataset(uri)
    victim = before.get_fragments()[7].data_files()[0].path
    os.truncate(tmp_path / "t" / "data" / victim, 1000)
    with pytest.raises(CorruptError):
        ls.compact(spark, uri, target_rows_per_fragment=300, groups_per_commit=1)
    after = ld.dataset(uri)
    assert after.count_rows() == before.count_rows()
    assert len(after.get_fragments()) < 8
    assert orphans(uri) == []


@pytest.mark.parametrize("stable", [False, pytest.param(True, marks=SLOW)])
@pytest.mark.parametrize(
    ("how", "again"),
    [
        pytest.param(lambda dataset: dataset.delete("id = 700"), 1, id="delete"),
        pytest.param(lambda dataset: dataset.insert(rows(50, 4000)), 0, id="append", marks=SLOW),
        pytest.param(
            lambda dataset: dataset.optimize.compact_files(target_rows_per_fragment=10_000),
            4,
            id="compaction",
            marks=SLOW,
        ),
    ],
)
def test_groups_changed_by_other_writers_are_replanned(
    spark: SparkSession, tmp_path: Path, stable: bool, how: Callable[[ld.LanceDataset], Any], again: int
) -> None:
    uri, twin = twins(tmp_path, stable=stable)
    for dataset in (ld.dataset(uri), twin):
        dataset.create_scalar_index("k", "BTREE")
    came: list[int] = []

    def progress(done: int, total: int) -> None:
        if not came:
            came.append(done)
            how(ld.dataset(uri))

    done = ls.compact(spark, uri, target_rows_per_fragment=350, groups_per_commit=4, progress=progress)
    how(twin)
    assert done.planned_again == again
    same_rows(uri, twin, "k = 5")
    assert orphans(uri) == []


def test_cleanup_removes_the_same_files_as_a_single_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup_jobs, "DELETED_FILES", 3)
    uri, twin = twins(tmp_path)
    for dataset in (ld.dataset(uri), twin):
        dataset.create_scalar_index("k", "BTREE")
        dataset.optimize.compact_files(target_rows_per_fragment=400)
        dataset.tags.create("kept", 2)
    with pytest.raises(ReferencedError):
        ls.cleanup(spark, uri, timedelta(0))
    options = {"older_than": timedelta(0), "error_if_tagged_old_versions": False}
    expected = vars(twin.cleanup_old_versions(**options)) | {"bytes_removed": None}
    would = ls.cleanup(spark, uri, **options, dry_run=True)
    assert vars(would) | {"bytes_removed": None} == expected
    assert ls.cleanup(spark, uri, **options) == would
    same_rows(uri, twin)
    assert [v["version"] for v in ld.dataset(uri).versions()] == [v["version"] for v in twin.versions()]
    assert ld.dataset(uri, "kept").count_rows() == twin.count_rows()
    assert orphans(uri) == []


def test_optimize_compacts_and_covers(spark: SparkSession, tmp_path: Path) -> None:
    uri, twin = twins(tmp_path)
    for dataset in (ld.dataset(uri), twin):
        dataset.create_scalar_index("k", "BTREE")
        dataset.insert(rows(50, 4000))
        dataset.insert(rows(50, 5000))
    done = ls.optimize(spark, uri, target_rows_per_fragment=400)
    twin.optimize.compact_files(target_rows_per_fragment=400)
    twin.optimize.optimize_indices()
    assert done.compaction.fragments_removed == 10
    assert [(f.name, f.rows) for f in done.indexes] == [("k_idx", twin.count_rows())]
    same_rows(uri, twin, "k = 5")
