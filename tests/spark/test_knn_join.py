"""Neighbours of a frame of queries equal those of a single machine."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import InvalidInputError, NotFoundError, UnknownColumnError, WrongTypeError

DIM = 8
module = importlib.import_module("lance_duck.spark.verbs.knn_join")  # its function hides it


def vectors(count: int, seed: int) -> pa.Array:
    numbers = np.random.default_rng(seed).random((count, DIM), np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM)


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of five fragments with 200 rows; two index segments cover three fragments, some rows are deleted."""
    path = str(tmp_path_factory.mktemp("knn") / "t.lance")

    def rows(start: int, count: int) -> pa.Table:
        ids = range(start, start + count)
        return pa.table({"id": ids, "label": [i % 3 for i in ids], "v": vectors(count, start)})

    table = ld.write_dataset(rows(0, 400), path, max_rows_per_file=200)
    table.create_index("v", "IVF_FLAT", num_partitions=2)
    table = ld.write_dataset(rows(400, 200), path, mode="append")
    table.optimize.optimize_indices(num_indices_to_merge=0)
    table = ld.write_dataset(rows(600, 400), path, mode="append", max_rows_per_file=200)
    table.delete("id % 10 = 7")
    return path


def queries(spark: SparkSession, count: int = 6) -> DataFrame:
    rows = [(f"q{i}", v) for i, v in enumerate(vectors(count, 99).to_pylist())]
    return spark.createDataFrame([*rows, ("none", None)], "name string, q array<float>")


def expected(uri: str, count: int = 6, **options: Any) -> list[tuple[Any, ...]]:
    found = ld.dataset(uri).search(vectors(count, 99), column="v", columns=["id"], **options).to_pylist()
    return sorted((f"q{row['query_index']}", row["_distance"], row["id"]) for row in found)


def answer(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(
        (row["name"], row["_distance"], row["id"]) for row in frame.select("name", "_distance", "id").collect()
    )


ASKED: list[dict[str, Any]] = [
    {},
    {"use_index": False},
    {"metric": "cosine", "k": 3},
    {"filter": "label = 1 AND id < 900"},
    {"filter": "label = 1", "prefilter": False},
    {"nprobes": 2, "refine_factor": 3, "distance_range": (0.1, 0.5)},
]


QUICK = [(module.QUERIES, ASKED[0]), (module.QUERIES, ASKED[5]), (0, ASKED[3])]
SLOW = [(few, options) for few in (module.QUERIES, 0) for options in ASKED if (few, options) not in QUICK]


@pytest.mark.parametrize(("few", "options"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)])
def test_a_knn_join_equals_the_single_machine_result(
    spark: SparkSession, uri: str, monkeypatch: pytest.MonkeyPatch, few: int, options: dict[str, Any]
) -> None:
    monkeypatch.setattr(module, "QUERIES", few)
    found = ls.knn_join(spark, queries(spark), uri, "v", "q", columns=["id"], parallelism=3, **options)
    assert found.columns == ["name", "q", "id", "_distance"]
    assert answer(found) == expected(uri, **options)


def test_all_columns_have_spark_types(spark: SparkSession, uri: str) -> None:
    frame = ls.knn_join(spark, queries(spark).drop("q").crossJoin(queries(spark).select("q")), uri, "v", k=1)
    assert [f.simpleString() for f in frame.schema][2:] == [
        "id:bigint",
        "label:bigint",
        "v:array<float>",
        "_distance:float",
    ]
    rows = frame.collect()
    assert len(rows) == 42
    table = {row["id"]: row["v"] for row in ld.dataset(uri).to_table().to_pylist()}
    assert all(row["v"] == table[row["id"]] for row in rows)


def test_rows_of_each_query_are_ordered_by_distance(spark: SparkSession, uri: str) -> None:
    found = ls.knn_join(spark, queries(spark), uri, "v", "q", 4, columns={"row": "id"}, parallelism=5).coalesce(1)
    rows = [(row["name"], row["_distance"]) for row in found.collect()]
    assert len(rows) == 24
    assert rows == sorted(rows)


def test_a_frame_stays_on_its_version(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ld.write_dataset(pa.table({"id": [1], "v": vectors(1, 1)}), path)
    frame = ls.knn_join(spark, queries(spark), path, "v")
    ld.write_dataset(pa.table({"id": [2], "v": vectors(1, 2)}), path, mode="append")
    assert frame.count() == 6
    assert ls.knn_join(spark, queries(spark), path, "v").count() == 12
    assert ls.knn_join(spark, queries(spark), path, "v", version=1).count() == 6


def test_queries_may_use_any_number_type(spark: SparkSession, uri: str) -> None:
    text = "SELECT array(0.5, 1, 0, 0, 0, 0, 0, 2) AS q UNION ALL SELECT array(1, 1, 0, 0, 0, 0, 0, 2)"
    assert ls.knn_join(spark, spark.sql(text), uri, "v", k=2).count() == 4


def test_an_empty_table_returns_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": pa.array([], pa.int64()), "v": vectors(0, 1)}), tmp_path / "t.lance")
    assert ls.knn_join(spark, queries(spark), tmp_path / "t.lance", "v").collect() == []


def test_invalid_arguments_are_rejected(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    asked = queries(spark)
    wrong: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: ls.knn_join(spark, asked, tmp_path / "no.lance"), NotFoundError, "no.lance"),
        (lambda: ls.knn_join(spark, asked, uri, "nothere"), UnknownColumnError, "nothere"),
        (lambda: ls.knn_join(spark, asked, uri, "id"), WrongTypeError, "vector"),
        (lambda: ls.knn_join(spark, asked, uri, "v", "nothere"), UnknownColumnError, "nothere"),
        (lambda: ls.knn_join(spark, asked, uri, "v", "name"), WrongTypeError, "arrays of numbers"),
        (
            lambda: ls.knn_join(spark, asked.withColumnRenamed("name", "ID"), uri, "v"),
            InvalidInputError,
            "columns with the same name",
        ),
        (lambda: ls.knn_join(spark, asked, uri, "v", k=0), InvalidInputError, "K"),
        (lambda: ls.knn_join(spark, asked, uri, "v", filter="x ="), InvalidInputError, "x ="),
        (lambda: ls.knn_join(spark, asked, uri, "v", parallelism=0), InvalidInputError, "parallelism"),
    ]
    for call, kind, match in wrong:
        with pytest.raises(kind, match=match):
            call()
    short = spark.createDataFrame([("a", [1.0, 2.0])], "name string, q array<float>")
    with pytest.raises(InvalidInputError, match="does not match index column size 8"):
        ls.knn_join(spark, short, uri, "v", parallelism=3)


@pytest.mark.parametrize(("few", "k"), [(module.QUERIES, 3), (0, 3)])
def test_rows_at_infinite_distance_are_neighbours(
    spark: SparkSession, tmp_path: Path, few: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "QUERIES", few)
    numbers = np.zeros((6, 8), np.float32)
    numbers[4], numbers[5] = 1e20, -1e20
    column = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 8)
    ld.write_dataset(pa.table({"id": range(6), "v": column}), tmp_path / "t.lance", max_rows_per_file=2)
    far = spark.createDataFrame([("far", [1e20] * 8)], "name string, q array<double>")
    found = answer(ls.knn_join(spark, far, tmp_path / "t.lance", "v", k=k, metric="dot"))
    assert found == [("far", -np.inf, 4), ("far", 1.0, 0), ("far", 1.0, 1)]
    found = answer(ls.knn_join(spark, far, tmp_path / "t.lance", "v", k=k))
    assert found == [("far", 0.0, 4), ("far", np.inf, 0), ("far", np.inf, 1)]
