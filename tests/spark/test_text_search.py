"""Full-text search from Spark: the rows and scores of a search on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.query import MatchQuery

WORDS = ["duck", "lake", "goose", "swim", "tree"]


@pytest.fixture(scope="module", params=["addresses", "stable row ids"])
def uri(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write 60 rows in six fragments, two segments over four of them, and delete some rows."""

    def rows(first: int) -> pa.Table:
        texts = [" ".join(WORDS[: 1 + (i * 7) % 5] * (1 + i % 3)) if i % 9 else None for i in range(first, first + 20)]
        return pa.table({"id": range(first, first + 20), "body": texts})

    place = str(tmp_path_factory.mktemp("texts") / "t.lance")
    stable = request.param == "stable row ids"
    dataset = ld.write_dataset(rows(0), place, max_rows_per_file=10, enable_stable_row_ids=stable)
    dataset.create_scalar_index("body", "INVERTED")
    dataset = ld.write_dataset(rows(20), dataset, mode="append", max_rows_per_file=10)
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset = ld.write_dataset(rows(40), dataset, mode="append", max_rows_per_file=10)
    dataset.delete("id % 10 = 3")
    return place


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("goose", {"k": 7}),
        ('"duck lake"', {"k": 100, "column": "body"}),
        (MatchQuery("swim tree", "body"), {"filter": "id % 2 = 0", "columns": ["id"], "with_row_id": True}),
        ("duck", {"filter": "id > 30", "prefilter": False, "k": 12, "parallelism": 3}),
        ("lake", {"filter": MatchQuery("tree", "body"), "columns": {"n": "id + 1", "s": "_score * 2"}}),
        ("duck", {"filter": "_score < 0.2", "k": 5}),
        ("nothing", {}),
    ],
)
def test_rows_and_scores_equal_those_of_a_single_machine(
    spark: SparkSession, uri: str, query: Any, options: dict[str, Any]
) -> None:
    asked = {name: value for name, value in options.items() if name != "parallelism"}
    expected = ld.dataset(uri).search(query, **{"k": 10, **asked})
    found = ls.search(spark, uri, query, **options)
    assert found.columns == expected.schema.names
    assert [row.asDict() for row in found.collect()] == expected.to_pylist()


def test_a_table_function_accepts_constants_and_lateral_columns(spark: SparkSession, uri: str) -> None:
    ls.register(spark)
    expected = ld.dataset(uri).search("goose", k=3, columns=["id"]).to_pylist()
    call = f"lance_search('{uri}', 'goose', k => 3, column => 'body', columns => 'id')"
    assert [row.asDict() for row in spark.sql(f"SELECT * FROM {call}").collect()] == expected
    lateral = f"SELECT w, id FROM VALUES ('tree'), (NULL) q(w), LATERAL lance_search('{uri}', q.w, 1)"
    (best,) = ld.dataset(uri).search("tree", k=1).to_pylist()
    assert [tuple(row) for row in spark.sql(lateral).collect()] == [("tree", best["id"])]


def test_invalid_arguments_are_rejected_before_the_search(spark: SparkSession, uri: str) -> None:
    with pytest.raises(ld.LanceDuckError, match="must contain strings"):
        ls.search(spark, uri, "duck", column="id")
    with pytest.raises(ld.LanceDuckError, match="k: expected a whole number"):
        ls.search(spark, uri, "duck", 0)
    ls.register(spark)
    with pytest.raises(PySparkException, match="argument 'query' is missing"):
        spark.sql(f"SELECT * FROM lance_search('{uri}')").collect()


def test_an_empty_table_returns_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    ld.write_dataset(pa.schema([("body", pa.string())]).empty_table(), place)
    assert ls.search(spark, place, "duck").collect() == []


@pytest.mark.parametrize("options", [{}, {"k": 100, "columns": ["id"], "with_row_id": True}, {"filter": "id > 12"}])
def test_list_elements_are_found_with_their_positions(
    spark: SparkSession, tmp_path: Path, options: dict[str, Any]
) -> None:
    place = str(tmp_path / "t.lance")
    bodies = [[" ".join(WORDS[: 1 + (i + j) % 5]) for j in range(i % 4)] for i in range(30)]
    rows = pa.table({"id": range(30), "body": bodies})
    dataset = ld.write_dataset(rows.slice(0, 20), place, max_rows_per_file=10)
    dataset.create_scalar_index("body", "INVERTED", document_granularity="LIST_ELEMENT")
    dataset = ld.write_dataset(rows.slice(20), dataset, mode="append")
    expected = dataset.search("goose", **{"k": 10, **options})
    found = ls.search(spark, place, "goose", **options)
    assert found.columns == expected.schema.names
    assert [row.asDict() for row in found.collect()] == expected.to_pylist()
