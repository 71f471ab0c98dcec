"""Statements that only DuckDB needs to handle, and statements that change name lookup."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import lance_duck as ld
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.foreign import ForeignTexts, changes_search
from lance_duck.duck.tables.folder import Folder


@pytest.mark.parametrize(
    "sql",
    [
        "USE lance",
        "-- where\n use memory.main",
        "SET search_path = 'lance.main,memory.main'",
        "set session schema = 'lance'",
        "RESET search_path",
        "PRAGMA search_path='lance'",
        "SET python_scan_all_frames = true",
    ],
)
def test_settings_of_the_search_change_it(sql: str) -> None:
    assert changes_search(sql)


@pytest.mark.parametrize("sql", ["SET threads = 1", "SELECT search_path FROM used", "SELECT 1", "", "users"])
def test_other_statements_do_not_change_search_settings(sql: str) -> None:
    assert not changes_search(sql)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForeignTexts]:
    folder = tmp_path_factory.mktemp("tables")
    for name in ("zones", "Åre 1"):
        ld.write_dataset({"id": [1]}, folder / f"{name}.lance")
    with duckdb.connect() as native:
        catalog = TableCatalog({}, Folder(str(folder)))
        catalog.create(native)
        catalog.refresh()
        yield ForeignTexts(catalog)


@pytest.mark.parametrize(
    "sql", ["SELECT 42", " \n from own;; ", "With w AS (SELECT 1) FROM w", "SELECT 'é', zone, $zones$ ; $zones$ AS a;"]
)
def test_selects_without_lance_names_are_foreign(texts: ForeignTexts, sql: str) -> None:
    assert texts.is_select(sql) == ("zones" not in sql)


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "",
            ";",
            "-- SELECT\nDROP TABLE x",
            "(SELECT 1)",
            "SELECT 1; SELECT 2",
            "selected",
            "INSERT INTO own VALUES (1)",
        ),
        *("SELECT * FROM Zones", 'SELECT * FROM "ZONES" WHERE "é" = 1', "FROM 'x.LANCE'", "FROM (DESCRIBE own)"),
        *(
            "SELECT * FROM DUCKDB_tables()",
            "SELECT lance_scan('x')",
            'FROM "ÅRE 1"',
            "WITH d AS (DELETE FROM own) FROM d",
        ),
    ],
)
def test_other_statements_are_not_foreign_selects(texts: ForeignTexts, sql: str) -> None:
    assert not texts.is_select(sql)
