"""Table metadata in SQL: indexes, settings and metadata."""

from __future__ import annotations

from pathlib import Path

import duckdb
import lance
import pytest

import lance_duck as ld


@pytest.mark.parametrize("table", ["trips", "lance.trips", "{folder}/trips.lance"])
def test_lance_indexes_returns_one_row_per_index(con: ld.Connection, folder: Path, table: str) -> None:
    path = table.format(folder=folder)
    assert con.execute(f"FROM lance_indexes('{path}')").fetchall() == []
    lance.dataset(folder / "trips.lance").create_scalar_index("id", "BTREE", name="it's")
    relation = con.sql(f"FROM lance_indexes('{path}')")
    assert relation.columns == ["index_name", "index_type", "fields", "rows_indexed", "details"]
    assert list(map(str, relation.types)) == ["VARCHAR", "VARCHAR", "VARCHAR", "UBIGINT", "VARCHAR"]
    assert [row[:4] for row in relation.fetchall()] == [("it's", "BTree", "id", 7)]
    assert con.execute(f"SELECT count(*) FROM lance_indices('{path}')").fetchall() == [(1,)]


def test_lance_indexes_works_on_a_plain_connection(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    assert plain.execute(f"SELECT count(*) FROM lance_indexes('{folder}/trips.lance')").fetchall() == [(0,)]
