"""What tables say of themselves in SQL: indexes, settings and metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnknownColumnError


@pytest.mark.parametrize("table", ["trips", "lance.trips", "{folder}/trips.lance"])
def test_indexes_are_rows(con: ld.Connection, folder: Path, table: str) -> None:
    path = table.format(folder=folder)
    assert con.execute(f"FROM lance_indexes('{path}')").fetchall() == []
    lance.dataset(folder / "trips.lance").create_scalar_index("id", "BTREE", name="it's")
    relation = con.sql(f"FROM lance_indexes('{path}')")
    assert relation.columns == ["index_name", "index_type", "fields", "rows_indexed", "details"]
    assert list(map(str, relation.types)) == ["VARCHAR", "VARCHAR", "VARCHAR", "UBIGINT", "VARCHAR"]
    assert [row[:4] for row in relation.fetchall()] == [("it's", "BTree", "id", 7)]
    assert con.execute(f"SELECT count(*) FROM lance_indices('{path}')").fetchall() == [(1,)]


def test_settings_and_metadata_are_rows_by_key(con: ld.Connection) -> None:
    def rows(sql: str) -> list[tuple[Any, ...]]:
        return con.execute(sql).fetchall()

    for call in (
        "lance_set_config(trips, 'b', '2')",
        "lance_set_config(trips, 'a', 'it''s')",
        "lance_set_table_metadata(trips, 'owner', 'ann')",
        "lance_set_schema_metadata(trips, 'k', 'v')",
        "lance_set_column_metadata(trips, 'id', 'unit', 'm')",
    ):
        con.execute(f"CALL {call}")
    assert rows("FROM lance_config('trips') WHERE Key < 'c'") == [("a", "it's"), ("b", "2")]
    assert rows("SELECT value FROM lance_table_metadata('trips') WHERE key = 'owner'") == [("ann",)]
    assert rows("FROM lance_schema_metadata('trips')") == [("k", "v")]
    assert rows("FROM lance_column_metadata('trips', 'ID')") == [("unit", "m")]
    assert rows("FROM lance_column_metadata('trips', 'city')") == []
    joined = (
        "SELECT c.Key, i.index_name FROM lance_config('trips') c LEFT JOIN lance_indexes('trips') i ON true LIMIT 1"
    )
    assert rows(joined) == [("a", None)]


def test_facts_are_those_of_now(con: ld.Connection) -> None:
    con.execute("CREATE VIEW settings AS FROM lance_config('trips')")
    assert con.execute("SELECT count(*) FROM settings WHERE Key = 'a'").fetchall() == [(0,)]
    con.execute("CALL lance_set_config(trips, 'a', 'b')")
    assert con.execute("SELECT count(*) FROM settings WHERE Key = 'a'").fetchall() == [(1,)]


def test_tables_and_columns_that_are_not_there_are_errors(con: ld.Connection) -> None:
    with pytest.raises(NotFoundError, match="nowhere"):
        con.execute("FROM lance_indexes('nowhere.lance')")
    with pytest.raises(UnknownColumnError, match="nope"):
        con.execute("FROM lance_column_metadata('trips', 'nope')")
    with pytest.raises(InvalidInputError, match="lance_config without a table"):
        con.execute("FROM lance_config(NULL)")


def test_a_plain_connection_knows_them(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    assert plain.execute(f"SELECT count(*) FROM lance_indexes('{folder}/trips.lance')").fetchall() == [(0,)]
