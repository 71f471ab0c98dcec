"""Distributed delete and update equal the single-machine verbs."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from spark.rivals import between
from spark.tables import files, rows

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import CommitConflictError, InvalidInputError, NotFoundError
from lance_duck.spark.verbs import change_jobs

ROWS = 60


def make(path: Path, *, stable: bool = False) -> str:
    """Three fragments of 20 rows."""
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [f"t{i % 7}" for i in range(ROWS)]})
    ld.write_dataset(rows, path, max_rows_per_file=20, enable_stable_row_ids=stable)
    return str(path)


def twins(tmp_path: Path, *, stable: bool = False) -> tuple[str, ld.LanceDataset]:
    """A table for Spark, and its like for one machine."""
    return make(tmp_path / "spark.lance", stable=stable), ld.dataset(make(tmp_path / "one.lance", stable=stable))


@pytest.mark.parametrize(
    "where",
    [
        "id % 3 = 0 OR id < 20",
        "id = (SELECT max(id) FROM target)",
        pytest.param("false", marks=pytest.mark.slow),
        pytest.param("true", marks=pytest.mark.slow),
    ],
)
def test_delete_equals_the_single_machine_delete(spark: SparkSession, tmp_path: Path, where: str) -> None:
    uri, one = twins(tmp_path)
    assert ls.delete(spark, uri, where, parallelism=3) == one.delete(where)
    assert rows(uri) == rows(one.uri)
    assert ld.dataset(uri).version == one.version
    ld.dataset(uri).validate()


@pytest.mark.parametrize("stable", [pytest.param(False, marks=pytest.mark.slow), True])
def test_update_equals_the_single_machine_update(spark: SparkSession, tmp_path: Path, stable: bool) -> None:
    uri, one = twins(tmp_path, stable=stable)
    updates, where = {"id": "id + 1000", "s": "s || '!'"}, "id % 2 = 0 AND id < 30"
    assert ls.update(spark, uri, updates, where, parallelism=3) == {"num_rows_updated": 15}
    assert one.update(updates, where) == {"num_rows_updated": 15}
    assert rows(uri) == rows(one.uri)
    if stable:
        hidden = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        mine = ld.dataset(uri).to_table(columns=hidden).sort_by("id")
        assert mine.to_pylist() == one.to_table(columns=hidden).sort_by("id").to_pylist()


def test_update_subqueries_see_the_whole_table(spark: SparkSession, tmp_path: Path) -> None:
    uri, one = twins(tmp_path)
    updates = {"id": "id + (SELECT max(id) FROM target)"}
    assert ls.update(spark, uri, updates, "id >= 50", parallelism=3) == one.update(updates, "id >= 50")
    assert rows(uri) == rows(one.uri)


def test_invalid_changes_are_rejected_and_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    before = files(uri)
    with pytest.raises(InvalidInputError, match="nothere"):
        ls.delete(spark, uri, "nothere = 1")
    with pytest.raises(InvalidInputError, match="delete needs a predicate"):
        ls.delete(spark, uri, None)
    with pytest.raises(InvalidInputError, match="id = "):
        ls.update(spark, uri, {"id": "CAST(CASE WHEN id > 50 THEN 'x' ELSE '1' END AS BIGINT)"}, parallelism=3)
    with pytest.raises(InvalidInputError, match="parallelism"):
        ls.update(spark, uri, {"id": "1"}, parallelism=0)
    with pytest.raises(NotFoundError):
        ls.delete(spark, tmp_path / "no.lance", "true")
    assert files(uri) == before


def test_a_change_that_loses_a_race_finds_its_rows_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    between(monkeypatch, change_jobs, "run_jobs", lambda: ld.dataset(uri).update({"id": "id + 100"}, "id < 10"))
    assert ls.update(spark, uri, {"s": "'new'"}, "id < 30", parallelism=3) == {"num_rows_updated": 20}
    found = rows(uri)
    assert [row["id"] for row in found if row["s"] == "new"] == list(range(10, 30))
    named = {os.path.basename(f.path) for each in ld.dataset(uri).get_fragments() for f in each.metadata.files}
    kept = {os.path.basename(name) for name in files(uri) if name.endswith(".lance")}
    assert len(kept - named) == 1  # the other change replaced a file of an older version


def test_a_concurrent_delete_of_other_rows_does_not_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    between(monkeypatch, change_jobs, "run_jobs", lambda: ld.dataset(uri).delete("id >= 50"))
    assert ls.delete(spark, uri, "id >= 40 AND id < 50", parallelism=3) == {"num_deleted_rows": 10}
    assert [row["id"] for row in rows(uri)] == list(range(40))


def test_a_change_gives_up_after_its_retries_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    seen: list[set[str]] = []

    def other() -> None:
        ld.dataset(uri).update({"id": "id + 100"}, "id < 10")
        seen.append(files(uri))

    between(monkeypatch, change_jobs, "run_jobs", other)
    with pytest.raises(CommitConflictError):
        ls.update(spark, uri, {"s": "'new'"}, "id < 30", parallelism=3, conflict_retries=0)
    assert len(seen) == 1
    named = {name for name in files(uri) if name.endswith(".lance")}
    assert len(named) == 4
