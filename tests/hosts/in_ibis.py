"""ibis on connections of this package with DuckDB 1 and 2: DuckDB must find tables in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

import lance_duck as ld

ROWS = {"id": range(100), "s": [f"row {i % 5}" for i in range(100)], "x": [i / 2 for i in range(100)]}
GROUPS = [["row 1", 1, 96], ["row 2", 1, 97], ["row 3", 1, 98], ["row 4", 1, 99]]


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(ROWS, tmp_path / "t.lance", max_rows_per_file=30)


@pytest.fixture
def backend(table: ld.LanceDataset, tmp_path: Path) -> Any:
    backend = ibis.duckdb.from_connection(ld.connect(tmp_path))
    backend.raw_sql("SET python_enable_replacements = true")
    return backend


@pytest.fixture
def t(backend: Any) -> Any:
    return backend.table("t", database=("lance", "main"))


def grouped(t: Any) -> list[list[Any]]:
    last = t.filter(t.id >= 96)
    groups = last.group_by("s").agg(n=last.count(), top=last.id.max()).order_by("s")
    values: list[list[Any]] = groups.execute().values.tolist()
    return values


def plan(backend: Any, query: Any) -> str:
    """Return how our part of a query is read."""
    lines = dict(backend.raw_sql(f"EXPLAIN ANALYZE {ibis.to_sql(query, dialect='duckdb')}").fetchall())
    return str(lines["lance_plan"])


def test_an_existing_connection_can_be_used_with_its_tables(backend: Any, t: Any) -> None:
    assert backend.list_tables(database=("lance", "main")) == ["t"]
    assert t.schema() == ibis.schema({"id": "int64", "s": "string", "x": "float64"})
    assert grouped(t) == GROUPS


def test_results_are_returned_in_each_form(t: Any) -> None:
    one = t.filter(t.id == 7).select("id", "s")
    expected = [{"id": 7, "s": "row 2"}]
    assert one.to_pyarrow().to_pylist() == expected
    assert one.to_pyarrow_batches().read_all().to_pylist() == expected
    assert one.to_pandas().to_dict("records") == expected
    assert t.count().execute() == 100


def test_columns_and_filters_are_pushed_down(backend: Any, t: Any) -> None:
    lines = plan(backend, t.filter(t.x > 49).select("s"))
    assert "filter: x > 49.0" in lines
    assert "read first, for the filter: x" in lines
    assert "read then, for the rows left: s" in lines
    assert "returned: 1 rows" in lines
    assert "columns: s\n" in plan(backend, t.s.nunique())


def test_a_filter_uses_a_scalar_index(table: ld.LanceDataset, backend: Any, t: Any) -> None:
    table.create_scalar_index("id", "BTREE")
    lines = plan(backend, t.filter(t.id == 7).select("s"))
    assert "by id_idx" in lines
    assert "0 scanned" in lines
    assert t.filter(t.id == 7).s.execute().tolist() == ["row 2"]


def test_joins_and_windows_run(t: Any) -> None:
    assert t.join(t.view(), "id").count().execute() == 100
    ranked = t.mutate(place=ibis.row_number().over(group_by="s", order_by=ibis.desc("id")))
    assert sorted(ranked.filter(ranked.place == 0).id.execute()) == [95, 96, 97, 98, 99]


def test_query_results_can_be_stored_as_a_lance_table(backend: Any, t: Any, tmp_path: Path) -> None:
    kept = ibis.to_sql(t.filter(t.id < 3), dialect="duckdb")
    backend.raw_sql(f"CREATE TABLE u AS {kept}")
    assert ld.dataset(tmp_path / "u.lance").to_table()["id"].to_pylist() == [0, 1, 2]
    assert backend.table("u", database=("lance", "main")).count().execute() == 3


def test_table_names_are_unqualified(backend: Any) -> None:
    assert backend.list_tables() == ["t"]
    assert backend.table("t").count().execute() == 100


def test_tables_and_views_of_ibis_are_stored_in_the_folder(backend: Any, t: Any, tmp_path: Path) -> None:
    backend.create_table("few", t.filter(t.id < 3))
    backend.create_view("fewer", backend.table("few").filter(ibis._.id < 2))
    assert ld.dataset(tmp_path / "few.lance").count_rows() == 3
    assert ld.connect(tmp_path).sql("SELECT id FROM fewer ORDER BY id").fetchall() == [(0,), (1,)]


@pytest.mark.skipif(
    not hasattr(duckdb.DuckDBPyConnection, "fetch_arrow_table"), reason="ibis calls a method that DuckDB 2 has not"
)
def test_a_connection_of_ibis_scans_paths_after_register(table: ld.LanceDataset) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("SET python_enable_replacements = true")
    ld.register(backend.con)
    assert grouped(backend.sql(f"FROM lance_scan('{table.uri}')")) == GROUPS


def test_the_polars_backend_accepts_a_lazy_frame(table: ld.LanceDataset) -> None:
    pytest.importorskip("polars")
    backend = ibis.polars.connect(tables={"t": table.to_polars()})
    assert grouped(backend.table("t")) == GROUPS
