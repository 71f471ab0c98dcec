"""Distributed merges equal the single-machine verb."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from spark.rivals import between
from spark.tables import files

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.spark.verbs import merge_jobs

ROWS = 60
Plan = Callable[[Any], Any]


def table(ids: list[int | None], mark: str) -> pa.Table:
    columns = {"id": pa.array(ids, pa.int64()), "s": pa.array([f"{mark}{i}" for i in ids])}
    vectors = pa.array([[float(i or 0), 1.0] for i in ids], pa.list_(pa.float32(), 2))
    return pa.table({**columns, "n": pa.array([i and i % 4 for i in ids], pa.int32()), "v": vectors})


def make(path: Path, *, stable: bool = False) -> str:
    """Three fragments of 20 rows, with every second id, and one that is null."""
    rows = table([*range(0, 2 * ROWS - 2, 2), None], "t")
    ld.write_dataset(rows, path, max_rows_per_file=20, enable_stable_row_ids=stable)
    return str(path)


def twins(tmp_path: Path, *, stable: bool = False) -> tuple[str, ld.LanceDataset]:
    return make(tmp_path / "spark.lance", stable=stable), ld.dataset(make(tmp_path / "one.lance", stable=stable))


def frame(spark: SparkSession, rows: pa.Table, tasks: int = 3) -> DataFrame:
    lists = rows.set_column(3, "v", rows["v"].cast(pa.list_(pa.float32()))) if "v" in rows.column_names else rows
    return spark.createDataFrame(lists).repartition(tasks)


ORDER = [("id", "ascending"), ("s", "ascending")]


def rows(uri: str) -> list[dict[str, object]]:
    ours = ld.dataset(uri).to_table().sort_by(ORDER).to_pylist()
    lance = importlib.import_module("lance")  # Spark starts with a fork, which makes pylance warn
    assert lance.dataset(uri).to_table().sort_by(ORDER).to_pylist() == ours
    return ours


def upsert(merge: Any) -> Any:
    return merge.when_matched_update_all().when_not_matched_insert_all()


PLANS: dict[str, Plan] = {
    "upsert": upsert,
    "insert": lambda m: m.when_not_matched_insert_all(),
    "update": lambda m: m.when_matched_update_all(),
    "update_if": lambda m: m.when_matched_update_all("source.n > 1 AND target.s <> 't8'").when_not_matched_insert_all(),
    "delete": lambda m: m.when_matched_delete(),
    "replace": lambda m: upsert(m).when_not_matched_by_source_delete(),
    "replace_part": lambda m: upsert(m).when_not_matched_by_source_delete("id >= 80 AND n = 2"),
    "only_by_source": lambda m: m.when_not_matched_by_source_delete("id < 50"),
}


QUICK = ("upsert", "update_if", "replace_part")


@pytest.mark.parametrize("name", [p if p in QUICK else pytest.param(p, marks=pytest.mark.slow) for p in PLANS])
def test_a_merge_equals_the_single_machine_merge(spark: SparkSession, tmp_path: Path, name: str) -> None:
    uri, one = twins(tmp_path)
    source = table([*range(30), 200, 201, 202, None, None], "s")
    expected = PLANS[name](one.merge_insert("id")).execute(source)
    assert PLANS[name](ls.merge_insert(spark, frame(spark, source), uri, on="id")).execute() == expected
    assert rows(uri) == rows(one.uri)
    ld.dataset(uri).validate()


def test_moved_rows_keep_their_stable_ids(spark: SparkSession, tmp_path: Path) -> None:
    uri, one = twins(tmp_path, stable=True)
    source = table([2, 4, 40, 42, 80, 81, 300], "s")
    upsert(one.merge_insert("id")).execute(source)
    upsert(ls.merge_insert(spark, frame(spark, source), uri, on="id", parallelism=2)).execute()
    hidden = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    mine = ld.dataset(uri).to_table(columns=hidden).sort_by("id").to_pylist()
    theirs = one.to_table(columns=hidden).sort_by("id").to_pylist()
    is_new = {81, 300}
    assert [r for r in mine if r["id"] not in is_new] == [r for r in theirs if r["id"] not in is_new]
    assert {r["_rowid"] for r in mine if r["id"] in is_new} == {60, 61}
    assert rows(uri) == rows(one.uri)


def test_columns_missing_in_the_source_are_kept_or_null(spark: SparkSession, tmp_path: Path) -> None:
    uri, one = twins(tmp_path)
    source = table([2, 4, 5, 40, 7], "s").select(["s", "id"])
    assert upsert(ls.merge_insert(spark, frame(spark, source), uri, on="id")).execute() == upsert(
        one.merge_insert("id")
    ).execute(source)
    assert rows(uri) == rows(one.uri)


@pytest.mark.slow
def test_several_key_columns_are_supported(spark: SparkSession, tmp_path: Path) -> None:
    uri, one = twins(tmp_path)
    source = pa.concat_tables([table([2, 4, 6], "t"), table([2, 8, None], "u")])
    keys = ["s", "id"]
    assert upsert(ls.merge_insert(spark, frame(spark, source), uri, on=keys)).execute() == upsert(
        one.merge_insert(keys)
    ).execute(source)
    assert rows(uri) == rows(one.uri)


@pytest.mark.parametrize(
    ("few", "ids"),
    [
        (0, [5, 7, 9, 5]),
        pytest.param(merge_jobs.SOURCE_KEYS, [5, 7, 9, 5], marks=pytest.mark.slow),
        pytest.param(0, [4, 6, 8, 4], marks=pytest.mark.slow),
        pytest.param(merge_jobs.SOURCE_KEYS, [4, 6, 8, 4], marks=pytest.mark.slow),
    ],
)
def test_a_duplicate_key_is_rejected_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: list[int], few: int
) -> None:
    monkeypatch.setattr(merge_jobs, "SOURCE_KEYS", few)
    uri = make(tmp_path / "t.lance")
    before = files(uri)
    with pytest.raises(InvalidInputError, match=rf"Ambiguous merge.*id = {ids[0]}"):
        upsert(ls.merge_insert(spark, frame(spark, table([*ids, 100, 101], "s")), uri, on="id")).execute()
    assert files(uri) == before


@pytest.mark.slow
def test_the_first_of_several_equal_source_keys_can_be_chosen(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    source = pa.concat_tables([table([4, 5], "first"), table([5, 4], "second")])
    merge = upsert(ls.merge_insert(spark, frame(spark, source, 1), uri, on="id")).source_dedupe_behavior("first_seen")
    assert merge.execute() == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert {r["id"]: r["s"] for r in rows(uri) if r["id"] in (4, 5)} == {4: "first4", 5: "first5"}


@pytest.mark.slow
def test_one_source_row_may_update_several_rows(spark: SparkSession, tmp_path: Path) -> None:
    for uri in (str(tmp_path / "spark.lance"), str(tmp_path / "one.lance")):
        ld.write_dataset(table([1, 2, 1, 3, 2, 1], "t"), uri, max_rows_per_file=2)
    source = table([1, 3, 4], "s")
    done = upsert(ls.merge_insert(spark, frame(spark, source), tmp_path / "spark.lance", on="id")).execute()
    assert done == upsert(ld.dataset(tmp_path / "one.lance").merge_insert("id")).execute(source)
    assert rows(str(tmp_path / "spark.lance")) == rows(str(tmp_path / "one.lance"))


@pytest.mark.parametrize("few", [0, pytest.param(merge_jobs.SOURCE_KEYS, marks=pytest.mark.slow)])
def test_large_and_small_sources_give_the_same_result(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(merge_jobs, "SOURCE_KEYS", few)
    monkeypatch.setattr(merge_jobs, "DRIVER_DELETIONS", 1)
    uri, one = twins(tmp_path)
    source = table([*range(0, 100, 5)], "s")
    done = upsert(ls.merge_insert(spark, frame(spark, source), uri, on="id", parallelism=4)).execute()
    assert done == upsert(one.merge_insert("id")).execute(source)
    assert rows(uri) == rows(one.uri)


def test_the_source_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    source = frame(spark, table([*range(20)], "s")).withColumn("s", F.expr("uuid()"))
    upsert(ls.merge_insert(spark, source, uri, on="id")).execute()
    assert len({r["s"] for r in rows(uri)}) == 70


def test_an_empty_source_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    before = rows(uri)
    source = frame(spark, table([1], "s")).where("id = 0")
    done = upsert(ls.merge_insert(spark, source, uri, on="id")).execute()
    assert done == {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 0}
    assert rows(uri) == before


def test_invalid_merges_are_rejected_and_leave_nothing(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    before = files(uri)
    source = frame(spark, table([1, 2], "s"))
    for wrong, match, kind in (
        (lambda: ls.merge_insert(spark, source, uri, on="nothere"), "nothere", InvalidInputError),
        (lambda: ls.merge_insert(spark, source, uri, on="id").execute(), "does not have an action", InvalidInputError),
        (lambda: upsert(ls.merge_insert(spark, source.drop("id"), uri, on="id")).execute(), "key", InvalidInputError),
        (
            lambda: upsert(ls.merge_insert(spark, source.withColumn("x", F.lit(1)), uri, on="id")).execute(),
            "x",
            InvalidInputError,
        ),
        (
            lambda: upsert(ls.merge_insert(spark, source.withColumn("v", F.expr("array(1f)")), uri, on="id")).execute(),
            "v",
            InvalidInputError,
        ),
        (
            lambda: upsert(ls.merge_insert(spark, source.withColumn("id", F.lit("a")), uri, on="id")).execute(),
            "'id'.*expected int64, found string",
            InvalidInputError,
        ),
        (
            lambda: upsert(ls.merge_insert(spark, source.withColumn("id", F.lit(1.5)), uri, on="id")).execute(),
            "'id'",
            InvalidInputError,
        ),
        (
            lambda: ls.merge_insert(spark, source, uri, on="id").when_matched_fail().execute(),
            "id = 2",
            InvalidInputError,
        ),
        (lambda: upsert(ls.merge_insert(spark, source, uri, on="id")).execute(source), "frame", UnsupportedError),
        (lambda: ls.merge_insert(spark, source, tmp_path / "no.lance", on="id"), "no.lance", NotFoundError),
    ):
        with pytest.raises(kind, match=match):
            wrong()
    assert files(uri) == before


def test_a_merge_that_loses_a_race_joins_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    seen = between(
        monkeypatch,
        merge_jobs,
        "run_frame",
        lambda: upsert(ld.dataset(uri).merge_insert("id")).execute(table([2, 5], "other")),
    )
    done = upsert(ls.merge_insert(spark, frame(spark, table([2, 5, 7], "s")), uri, on="id")).execute()
    assert done == {"num_inserted_rows": 1, "num_updated_rows": 2, "num_deleted_rows": 0}
    found = rows(uri)
    assert len(found) == ROWS + 2
    assert {r["id"]: r["s"] for r in found if r["id"] in (2, 5, 7)} == {2: "s2", 5: "s5", 7: "s7"}
    assert seen == [1, 1]


def test_a_new_key_inserted_by_two_merges_becomes_one_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    between(monkeypatch, merge_jobs, "run_frame", lambda: ld.write_dataset(table([5], "other"), uri, mode="append"))
    done = upsert(ls.merge_insert(spark, frame(spark, table([5], "s")), uri, on="id")).execute()
    assert done == {"num_inserted_rows": 0, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert [r["s"] for r in rows(uri) if r["id"] == 5] == ["s5"]


@pytest.mark.slow
def test_a_concurrent_insert_of_other_keys_does_not_conflict(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    seen = between(
        monkeypatch, merge_jobs, "run_frame", lambda: ld.write_dataset(table([9], "other"), uri, mode="append")
    )
    upsert(ls.merge_insert(spark, frame(spark, table([5], "s")), uri, on="id")).execute()
    assert [r["s"] for r in rows(uri) if r["id"] in (5, 9)] == ["s5", "other9"]
    assert seen == [1]


@pytest.mark.slow
def test_a_killed_worker_leaves_nothing(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = make(tmp_path / "t.lance")
    write = merge_jobs._write
    mark = tmp_path / "killed"

    def killed(*args: Any) -> Any:
        part = write(*args)
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
        return part

    monkeypatch.setattr(merge_jobs, "_write", killed)
    done = upsert(ls.merge_insert(spark, frame(spark, table([2, 5], "s")), uri, on="id", parallelism=2)).execute()
    assert done == {"num_inserted_rows": 1, "num_updated_rows": 1, "num_deleted_rows": 0}
    assert mark.exists()
    named = {f.path for each in ld.dataset(uri).get_fragments() for f in each.metadata.files}
    assert {os.path.basename(name) for name in files(uri) if name.endswith(".lance")} == named


@pytest.mark.slow
def test_a_key_that_does_not_fit_the_column_raises_an_error(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    source = frame(spark, table([1, 2], "s")).withColumn("id", F.col("id") + F.lit(0.5).cast("double"))
    with pytest.raises(InvalidInputError, match="does not fit the column"):
        upsert(ls.merge_insert(spark, source, uri, on="id")).execute()


def test_a_merge_matches_every_nan_and_both_zeros(spark: SparkSession, tmp_path: Path) -> None:
    negative_nan = np.array([0xFFF8 << 48], "u8").view("f8")
    ld.write_dataset(pa.table({"k": [float("nan"), 0.0, 1.5], "n": [1, 2, 3]}), tmp_path / "t.lance")
    source = spark.createDataFrame(pa.table({"k": np.append(negative_nan, [-0.0, 2.5]), "n": [10, 20, 40]}))
    counts = upsert(ls.merge_insert(spark, source, tmp_path / "t.lance", "k")).execute()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (2, 1)
    assert sorted(ld.dataset(tmp_path / "t.lance").to_table()["n"].to_pylist()) == [3, 10, 20, 40]
