"""ibis on connections of ours: it has to let DuckDB find tables in Python, and to know the DuckDB that is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld

ibis = pytest.importorskip("ibis")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
knows_duckdb = pytest.mark.skipif(
    not hasattr(duckdb.DuckDBPyConnection, "fetch_arrow_table"), reason="ibis calls a method that DuckDB 2.0 has not"
)


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    rows = {"id": range(100), "s": [f"row {i % 5}" for i in range(100)]}
    return ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=30)


def grouped(t: Any) -> list[list[Any]]:
    chosen = t.filter(t.id >= 96)
    found: list[list[Any]] = (
        chosen.group_by("s").agg(n=chosen.count(), top=chosen.id.max()).order_by("s").execute().values.tolist()
    )
    return found


EXPECTED = [["row 1", 1, 96], ["row 2", 1, 97], ["row 3", 1, 98], ["row 4", 1, 99]]


@knows_duckdb
def test_a_connection_is_taken_with_its_tables(table: ld.LanceDataset, tmp_path: Path) -> None:
    backend = ibis.duckdb.from_connection(ld.connect(tmp_path))
    backend.raw_sql("SET python_enable_replacements = true")
    assert backend.list_tables(database=("lance", "main")) == ["t"]
    assert grouped(backend.table("t", database=("lance", "main"))) == EXPECTED


@knows_duckdb
def test_tables_have_short_names_after_use(table: ld.LanceDataset, tmp_path: Path) -> None:
    con = ld.connect(tmp_path)
    con.execute("USE lance")
    backend = ibis.duckdb.from_connection(con)
    backend.raw_sql("SET python_enable_replacements = true")
    assert backend.list_tables() == ["t"]
    t = backend.table("t")
    assert t.join(t.view(), "id").count().execute() == 100
    assert t.filter(t.id == 7).to_pyarrow().to_pylist() == [{"id": 7, "s": "row 2"}]


@knows_duckdb
def test_a_connection_of_ibis_scans_paths_after_register(table: ld.LanceDataset) -> None:
    backend = ibis.duckdb.connect()
    backend.raw_sql("SET python_enable_replacements = true")
    ld.register(backend.con)
    assert grouped(backend.sql(f"FROM lance_scan('{table.uri}')")) == EXPECTED


def test_the_backend_of_polars_takes_a_lazy_frame(table: ld.LanceDataset) -> None:
    backend = ibis.polars.connect(tables={"t": table.to_polars()})
    assert grouped(backend.table("t")) == EXPECTED
