"""`LanceDataset.sql` gives what pylance's gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError


@pytest.fixture
def datasets(tmp_path: Path) -> tuple[Any, ld.LanceDataset]:
    """One pylance table with two fragments and a deleted row, opened by both libraries."""
    path = tmp_path / "t.lance"
    ours = lance.write_dataset(pa.table({"id": [1, 2, 3, 4], "name": ["a", "b", None, "b"]}), path)
    ours.insert(pa.table({"id": [5, 6], "name": ["c", "a"]}))
    ours.delete("id = 2")
    return lance.dataset(path), ld.dataset(path)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM dataset",
        "SELECT id FROM dataset WHERE id > 2 ORDER BY id DESC LIMIT 2",
        "SELECT id + 1 AS more FROM dataset",
        "SELECT name, count(*) AS n, max(id) AS m FROM dataset GROUP BY name ORDER BY name NULLS FIRST",
        "SELECT a.id AS a, b.id AS b FROM dataset a JOIN dataset b ON a.id + 1 = b.id ORDER BY a.id",
        "SELECT id FROM dataset WHERE id > 100",
        "SELECT DISTINCT name FROM dataset ORDER BY name NULLS FIRST",
        "WITH q AS (SELECT id FROM dataset WHERE id < 4) SELECT sum(id) AS s FROM q",
    ],
)
def test_queries_return_the_same_rows_as_pylance(datasets: tuple[Any, ld.LanceDataset], query: str) -> None:
    theirs, ours = (dataset.sql(query).build().to_stream_reader().read_all() for dataset in datasets)
    assert ours.schema.names == theirs.schema.names
    assert ours.to_pylist() == theirs.to_pylist()


@pytest.mark.parametrize(("with_id", "with_address"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM dataset",
        "SELECT id FROM dataset WHERE id > 2",
        "SELECT id * 2 AS x FROM dataset ORDER BY id DESC LIMIT 2",
        "SELECT count(*) AS n FROM dataset",
        "SELECT name, max(id) AS m FROM dataset GROUP BY name ORDER BY m",
    ],
)
def test_row_ids_and_addresses_are_the_last_columns(
    datasets: tuple[Any, ld.LanceDataset], query: str, with_id: bool, with_address: bool
) -> None:
    theirs, ours = (
        dataset.sql(query).with_row_id(with_id).with_row_addr(with_address).build().to_stream_reader().read_all()
        for dataset in datasets
    )
    assert ours.schema.names == theirs.schema.names
    assert ours.to_pylist() == theirs.to_pylist()
    assert [f.type for f in ours.schema if f.name[0] == "_"] == [f.type for f in theirs.schema if f.name[0] == "_"]


@pytest.mark.parametrize("query", ["SELECT _rowid, id FROM dataset", "SELECT id FROM dataset WHERE _rowid = 2"])
def test_row_ids_can_be_selected_by_name(datasets: tuple[Any, ld.LanceDataset], query: str) -> None:
    theirs, ours = (
        dataset.sql(query).with_row_id().build().to_stream_reader().read_all().to_pylist() for dataset in datasets
    )
    assert ours == theirs


def test_table_name_renames_the_table_in_the_query(datasets: tuple[Any, ld.LanceDataset]) -> None:
    for dataset in datasets:
        batches = dataset.sql("SELECT id FROM other WHERE id < 4").table_name("other").build().to_batch_records()
        assert pa.Table.from_batches(batches).to_pydict() == {"id": [1, 3]}


def test_batches_respect_the_batch_size_and_are_never_empty(datasets: tuple[Any, ld.LanceDataset]) -> None:
    for dataset in datasets:
        query = dataset.sql("SELECT id FROM dataset")
        assert max(map(len, query.batch_size(2).build().to_batch_records())) <= 2
        assert dataset.sql("SELECT id FROM dataset WHERE false").build().to_batch_records() == []
        with pytest.raises(ValueError, match="batch_size"):
            query.batch_size(0).build().to_batch_records()


def test_bytes_of_batches_are_limited(datasets: tuple[Any, ld.LanceDataset]) -> None:
    batches = datasets[1].sql("SELECT id FROM dataset").batch_size_bytes(20).build().to_batch_records()
    assert max(batch.num_rows for batch in batches) == 2
    assert pa.Table.from_batches(batches)["id"].to_pylist() == [1, 3, 4, 5, 6]


def test_a_query_stays_on_its_version(datasets: tuple[Any, ld.LanceDataset]) -> None:
    for dataset in datasets:
        builder = dataset.sql("SELECT count(*) AS n FROM dataset")
        rows = dataset.count_rows()
        dataset.insert(pa.table({"id": [7], "name": ["d"]}))
        query = builder.build()
        assert [query.to_batch_records()[0].to_pylist() for _ in range(2)] == [[{"n": rows}]] * 2
        old = dataset.checkout_version(1).sql("SELECT count(*) AS n FROM dataset").build()
        assert old.to_batch_records()[0].to_pylist() == [{"n": 4}]


def test_plans_have_the_same_columns_as_in_pylance(datasets: tuple[Any, ld.LanceDataset]) -> None:
    for dataset in datasets:
        for explain in ("EXPLAIN", "EXPLAIN ANALYZE"):
            (plan, *_) = dataset.sql(f"{explain} SELECT id FROM dataset WHERE id = 3").build().to_batch_records()
            assert plan.schema.names == ["plan_type", "plan"]
            assert plan.num_rows


def test_statements_that_are_not_queries_are_rejected(datasets: tuple[Any, ld.LanceDataset]) -> None:
    _, ours = datasets
    for statements in ("", "SELECT 1; SELECT 2"):
        with pytest.raises(InvalidInputError, match="one statement"):
            ours.sql(statements).build().to_batch_records()
    for change in ("DELETE FROM dataset", "DROP TABLE dataset", "INSERT INTO dataset VALUES (1, 'a')"):
        with pytest.raises(UnsupportedError, match=r"LanceDataset\.sql cannot run \w+: expected a query"):
            ours.sql(change).build().to_batch_records()
    with pytest.raises(UnsupportedError, match="blob descriptions"):
        ours.sql("SELECT 1").blob_handling("blobs_descriptions")
    with pytest.raises(InvalidInputError, match="all_binary"):
        ours.sql("SELECT 1").blob_handling("x")  # type: ignore[arg-type]
    assert ld.dataset(ours.uri).version == ours.version


def test_a_query_uses_an_index(tmp_path: Path) -> None:
    ours = ld.write_dataset(pa.table({"id": range(5000), "name": ["a"] * 5000}), tmp_path / "t.lance")
    ours.create_scalar_index("id", "BTREE")
    plans = ours.sql("EXPLAIN SELECT name FROM dataset WHERE id = 3").build().to_batch_records()
    assert "id_idx" in "".join(pa.Table.from_batches(plans)["plan"].to_pylist())
