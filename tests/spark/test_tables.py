"""Views follow writes, metadata comes as frames, and SQL has table functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import InvalidInputError, NotFoundError


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Two fragments of 10 rows."""
    vectors = pa.array([[float(i), 1.0] for i in range(20)], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": pa.array(range(20), pa.int64()), "s": [f"t{i}" for i in range(20)], "v": vectors})
    ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=10, commit_message="the first")
    return str(tmp_path / "t.lance")


def test_a_view_is_refreshed_after_writes(spark: SparkSession, uri: str) -> None:
    ls.create_view(spark, "t", uri, columns=["id", "s"])
    ls.create_view(spark, "old", uri, version=1)

    def ids(view: str) -> int:
        return int(spark.sql(f"SELECT count(*) FROM {view}").collect()[0][0])

    assert (ids("t"), ids("old")) == (20, 20)
    ls.delete(spark, uri, "id >= 15")
    assert (ids("t"), ids("old")) == (15, 20)
    ls.write(spark.createDataFrame([(99, "x")], "id long, s string"), uri, "append")
    assert ids("t") == 16
    ld.dataset(uri).delete("id < 5")
    assert ids("t") == 16
    ls.refresh_view(spark, uri)
    assert ids("t") == 11
    assert spark.sql("SELECT s FROM t WHERE id = 99").collect()[0].s == "x"
    assert ls.drop_view(spark, "t")
    assert not ls.drop_view(spark, "t")
    ls.update(spark, uri, {"s": "'y'"}, "id = 99")
    assert not spark.catalog.tableExists("t")


def test_a_view_that_cannot_be_refreshed_keeps_its_rows(spark: SparkSession, uri: str) -> None:
    ls.create_view(spark, "gone", uri, columns=["id", "s"])
    ld.dataset(uri).drop_columns(["s"])
    with pytest.warns(UserWarning, match="'gone' was not refreshed.*s"):
        ls.delete(spark, uri, "id = 0")
    ls.drop_view(spark, "gone")
    with warnings.catch_warnings():
        ls.delete(spark, uri, "id = 1")


def test_a_view_whose_name_was_reused_is_not_refreshed(spark: SparkSession, uri: str) -> None:
    ls.create_view(spark, "mine", uri)
    ls.delete(spark, uri, "id = 0")
    ls.read(spark, uri, filter="id < 5").createOrReplaceTempView("mine")
    ls.delete(spark, uri, "id = 9")
    assert spark.table("mine").count() == 4
    ls.drop_view(spark, "mine")


def test_rows_are_counted(spark: SparkSession, uri: str) -> None:
    ld.dataset(uri).delete("id = 3")
    assert ls.count(spark, uri) == 19
    assert ls.count(spark, uri, version=1) == 20
    assert ls.count(spark, uri, "id < 12", parallelism=2) == 11
    assert ls.count(spark, uri, ("id < ?", [5])) == 4
    branch = ld.dataset(uri).create_branch("b")
    branch.delete("id < 10")
    ld.dataset(uri).tags.create("of_b", ("b", branch.version))
    ld.dataset(uri).delete("id = 15")
    assert ls.count(spark, uri, "id < 100", version="of_b", parallelism=2) == 10
    assert ls.count(spark, uri, "id < 100", version=("b", None)) == 10
    with pytest.raises(InvalidInputError, match="nothere"):
        ls.count(spark, uri, "nothere = 1")


def test_table_metadata_is_returned_as_frames(spark: SparkSession, uri: str) -> None:
    table = ld.dataset(uri)
    table.create_scalar_index("id", "BTREE")
    table.tags.create("best", 1)
    table.delete("id = 3")
    found = ls.history(spark, uri).collect()
    assert [(row.version, row.operation, row.read_version) for row in found] == [
        (3, "Delete", 2),
        (2, "CreateIndex", 1),
        (1, "Overwrite", 0),
    ]
    assert found[2].message == "the first"
    assert datetime.now(UTC) - found[0].timestamp.replace(tzinfo=UTC) < timedelta(hours=1)
    assert ls.history(spark, uri, 1).count() == 1
    rows = ls.versions(spark, uri).collect()
    assert [(row.version, row.num_rows, row.num_fragments, row.tags) for row in rows] == [
        (3, 19, 2, []),
        (2, 20, 2, []),
        (1, 20, 2, ["best"]),
    ]
    parts = ls.fragments(spark, uri).collect()
    assert [(row.fragment, row.num_rows, row.num_deleted_rows, row.num_files) for row in parts] == [
        (0, 9, 1, 1),
        (1, 10, 0, 1),
    ]
    assert ls.fragments(spark, uri, version=1).collect()[0].num_rows == 10
    (index,) = ls.indices(spark, uri).collect()
    assert (index["name"], index["type"], index["columns"]) == ("id_idx", "BTree", ["id"])
    assert (index["num_segments"], index["num_indexed_fragments"], index["num_unindexed_fragments"]) == (1, 2, 0)
    assert ls.indices(spark, uri, version=1).collect() == []


def test_sql_reads_a_table_at_a_version(spark: SparkSession, uri: str) -> None:
    ls.register(spark)
    ld.dataset(uri).delete("id < 10")

    def rows(text: str) -> list[Any]:
        return [tuple(row) for row in spark.sql(text).collect()]

    assert rows(f"SELECT count(*) FROM lance_table('{uri}')") == [(10,)]
    assert rows(f"SELECT id, v[0] FROM lance_table('{uri}', 1) WHERE id = 3") == [(3, 3.0)]
    found = rows(f"SELECT * FROM lance_table('{uri}', columns => 's, id', filter => 'id > 17')")
    assert found == [("t18", 18), ("t19", 19)]
    history = rows(f"SELECT version, operation, properties FROM lance_history('{uri}')")
    assert [(version, operation) for version, operation, _ in history] == [(2, "Delete"), (1, "Overwrite")]
    assert "the first" in history[1][2].values()


def test_sql_runs_nearest_neighbour_searches(spark: SparkSession, uri: str) -> None:
    ls.register(spark)

    def rows(text: str) -> list[Any]:
        return [tuple(row) for row in spark.sql(text).collect()]

    near = f"SELECT id, _distance FROM lance_vector_search('{uri}', 'v', array(4.2, 1), 2)"
    expected = ld.dataset(uri).search([4.2, 1.0], 2, "v", columns=["id"]).to_pylist()
    assert rows(near) == [(row["id"], row["_distance"]) for row in expected]
    queries = "VALUES ('a', array(3f, 1f)), ('b', array(7f, 1f)), ('none', null) AS q(name, v)"
    search = f"lance_vector_search('{uri}', 'v', q.v, k => 1, columns => 'id', filter => 'id <> 3')"
    assert sorted(rows(f"SELECT name, id, _distance FROM {queries}, LATERAL {search}")) == [
        ("a", 2, 1.0),
        ("b", 7, 0.0),
    ]


def test_invalid_calls_raise_clear_errors(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    ls.register(spark)
    for text, said in (
        (f"lance_table('{tmp_path}/no.lance')", "no.lance"),
        (f"lance_table('{uri}', columns => 'x')", "x"),
        (f"lance_table('{uri}', nothere => 1)", "nothere"),
        (f"lance_vector_search('{uri}', 'v')", "query"),
        (f"lance_vector_search('{uri}', 's', array(1))", "must be a vector"),
    ):
        with pytest.raises(PySparkException, match=said) as raised:
            spark.sql(f"SELECT * FROM {text}").collect()
        assert len(str(raised.value).splitlines()) < 10
    wrong: list[Callable[[], Any]] = [
        lambda: ls.create_view(spark, "no", tmp_path / "no.lance"),
        lambda: ls.count(spark, tmp_path / "no.lance"),
        lambda: ls.history(spark, tmp_path / "no.lance"),
    ]
    for call in wrong:
        with pytest.raises(NotFoundError):
            call()
