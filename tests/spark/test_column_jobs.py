"""Columns joined from a frame equal those of a single machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.rivals import between
from spark.tables import files, rows

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import CommitConflictError, InvalidInputError, NotFoundError, WrongTypeError
from lance_duck.spark.verbs import column_jobs

ROWS = 60


def make(path: Path, *, stable: bool = False) -> str:
    """Three fragments of 20 rows, some of them deleted."""
    rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "s": [f"t{i % 7}" for i in range(ROWS)]})
    ld.write_dataset(rows, path, max_rows_per_file=20, enable_stable_row_ids=stable).delete("id % 10 = 3")
    return str(path)


def frame(spark: SparkSession, uri: str, on: str, condition: str = "true") -> DataFrame:
    """New values for some rows: a number, and a vector."""
    found = ld.dataset(uri).to_table(columns=["id", "s", "_rowid", "_rowaddr"], filter=condition)
    keys = found[on].cast(pa.int64()) if on != "s" else found[on]
    vectors = pa.array([[float(i), 0.5] for i in found["id"].to_pylist()], pa.list_(pa.float32()))
    given = pa.table({on: keys, "x": pa.array([i * 2 for i in found["id"].to_pylist()], pa.int64()), "v": vectors})
    return spark.createDataFrame(given).repartition(3)


def with_values(uri: str, ids: Callable[[int], bool]) -> list[dict[str, Any]]:
    """Return the expected rows."""
    old = ld.dataset(uri).to_table().select(["id", "s"]).sort_by("id").to_pylist()
    given = [(r["id"] * 2, [float(r["id"]), 0.5]) if ids(r["id"]) else (None, None) for r in old]
    return [{**r, "x": x, "v": v} for r, (x, v) in zip(old, given, strict=True)]


@pytest.mark.parametrize(
    ("on", "stable"),
    [
        ("_rowaddr", False),
        ("_rowid", True),
        pytest.param("id", False, marks=pytest.mark.slow),
        pytest.param("_rowaddr", True, marks=pytest.mark.slow),
        pytest.param("_rowid", False, marks=pytest.mark.slow),
        pytest.param("id", True, marks=pytest.mark.slow),
    ],
)
def test_matched_rows_get_values_and_others_get_nulls(
    spark: SparkSession, tmp_path: Path, on: str, stable: bool
) -> None:
    uri = make(tmp_path / "t.lance", stable=stable)
    found = ls.add_columns(spark, uri, frame(spark, uri, on, "id < 35 AND id <> 6"), on, vector_columns={"v": 2})
    assert found == {"num_rows": 30, "num_fragments": 2}
    assert rows(uri) == with_values(uri, lambda i: i < 35 and i != 6)
    assert ld.dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    ld.dataset(uri).validate()


def test_a_key_shared_by_several_rows_updates_all_of_them(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    given = spark.createDataFrame([("t1", 1.5), ("t2", 2.5), (None, 3.0), ("no", 4.0)], "s string, y double")
    ls.add_columns(spark, uri, given, "s", parallelism=2)
    assert {(r["s"], r["y"]) for r in rows(uri) if r["y"]} == {("t1", 1.5), ("t2", 2.5)}
    one = ld.dataset(make(tmp_path / "one.lance"))
    one.merge(pa.table({"s": ["t1", "t2", "no"], "y": [1.5, 2.5, 4.0]}), "s")
    assert rows(uri) == one.to_table().sort_by("id").to_pylist()


def test_not_null_columns_require_a_value_for_every_row(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    before = files(uri)
    for condition in ("id <> 6", "id < 40"):
        part = frame(spark, uri, "_rowaddr", condition).drop("v")
        with pytest.raises(InvalidInputError, match="x"):
            ls.add_columns(spark, uri, part, not_null=["x"])
    assert files(uri) == before
    ls.add_columns(spark, uri, frame(spark, uri, "_rowaddr").drop("v"), not_null=["x"])
    assert not ld.dataset(uri).schema.field("x").nullable
    assert [r["x"] for r in rows(uri)] == [r["id"] * 2 for r in rows(uri)]


def test_invalid_arguments_are_rejected_without_changes(spark: SparkSession, tmp_path: Path) -> None:
    uri = make(tmp_path / "t.lance")
    before = files(uri)
    given = frame(spark, uri, "_rowaddr", "id < 5").drop("v")
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: ls.add_columns(spark, tmp_path / "no.lance", given), NotFoundError, "no.lance"),
        (lambda: ls.add_columns(spark, uri, given, "nothere"), InvalidInputError, "nothere"),
        (lambda: ls.add_columns(spark, uri, given.drop("x")), InvalidInputError, "does not have columns to add"),
        (lambda: ls.add_columns(spark, uri, given.withColumnRenamed("x", "s")), InvalidInputError, "'s'"),
        (lambda: ls.add_columns(spark, uri, given, not_null=["y"]), InvalidInputError, "not_null"),
        (lambda: ls.add_columns(spark, uri, given.selectExpr("x", "'a' _rowaddr")), WrongTypeError, "whole numbers"),
        (lambda: ls.add_columns(spark, uri, given.selectExpr("_rowaddr", "array(1d) v")), InvalidInputError, "length"),
        (lambda: ls.add_columns(spark, uri, given.union(given)), InvalidInputError, "several values.*_rowaddr 0"),
        (lambda: ls.add_columns(spark, uri, spark.sql("SELECT 3L _rowaddr, 1 x")), InvalidInputError, "_rowaddr 3"),
        (lambda: ls.add_columns(spark, uri, spark.sql("SELECT 99L<<32 _rowaddr, 1 x")), InvalidInputError, "does not"),
    ]
    for call, kind, match in wrong:
        with pytest.raises(kind, match=match):
            call()
    assert files(uri) == before


def test_a_concurrent_row_change_conflicts_if_addresses_would_be_wrong(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    given = frame(spark, uri, "_rowaddr", "id < 5").drop("v")
    between(monkeypatch, column_jobs, "run_frame", lambda: ld.dataset(uri).update({"s": "'new'"}, "id = 1"))
    with pytest.raises(CommitConflictError, match="changed since version 2"):
        ls.add_columns(spark, uri, given)
    assert ld.dataset(uri).version == 3
    with pytest.raises(CommitConflictError, match="changed since version 2"):
        ls.add_columns(spark, uri, given, version=2)
    ls.add_columns(spark, uri, frame(spark, uri, "id", "id < 5").drop("v"), "id")
    assert [r["x"] for r in rows(uri)][:4] == [0, 2, 4, 8]


def test_rows_that_are_appended_between_are_null(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = make(tmp_path / "t.lance")
    given = frame(spark, uri, "_rowaddr", "id < 5").drop("v")
    between(
        monkeypatch,
        column_jobs,
        "run_frame",
        lambda: ld.write_dataset(pa.table({"id": [100], "s": ["a"]}), uri, mode="append"),
    )
    ls.add_columns(spark, uri, given)
    assert [r["x"] for r in rows(uri)] == [0, 2, 4, 8] + [None] * 51
    named = {f.path for each in ld.dataset(uri).get_fragments() for f in each.metadata.files}
    assert {os.path.basename(name) for name in files(uri) if name.endswith(".lance")} == named
