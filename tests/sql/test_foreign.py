"""Statements without Lance tables go to DuckDB unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.foreign import ForeignTexts


@pytest.mark.parametrize(
    ("sql", "is_foreign"),
    [
        ("SELECT * FROM own WHERE x = 1", True),
        ("SELECT CASE WHEN x THEN 1 END FROM own", True),
        ("SELECT * FROM T", False),
        ('SELECT * FROM "t"', False),
        ("FROM 'x.lance'", False),
        ("SET lance_nearest = 'off'", False),
        ("SELECT * FROM LANCE_scan('x')", False),
        ("EXPLAIN SELECT * FROM own", False),
        ("INSERT INTO own VALUES (1)", False),
        ("CREATE VIEW own AS SELECT 1", False),
        ("ATTACH 'x' AS y", False),
        ("PREPARE p AS SELECT * FROM own", False),
        ("EXECUTE p", False),
        ("SELECT * FROM Lance.made()", False),
    ],
)
def test_statements_without_lance_tables_are_recognised_from_their_words(
    tmp_path: Path, sql: str, is_foreign: bool
) -> None:
    ld.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        texts = ForeignTexts(con._catalog)
        assert [sql in texts, sql in texts] == [is_foreign] * 2


@pytest.mark.parametrize(
    ("sql", "is_select"),
    [
        ("SELECT 42", True),
        (" from own;\n", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("SELECT * FROM own; SELECT 2", False),
        ("WITH a AS (SELECT 1) INSERT INTO own FROM a", False),
        ("SELECT * FROM t", False),
        ("SELECT * FROM lance_files('t')", False),
        ("SELECT table_name FROM duckdb_views()", False),
        ("FROM (SHOW TABLES)", False),
        ("SELECT * FROM information_schema.tables", False),
        ("BEGIN", False),
        ("SET threads = 1", False),
    ],
)
def test_native_selects_are_recognised_from_their_words(tmp_path: Path, sql: str, is_select: bool) -> None:
    ld.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        texts = ForeignTexts(con._catalog)
        assert [texts.is_select(sql), texts.is_select(sql)] == [is_select] * 2


@pytest.mark.parametrize("setting", ["SET search_path = 'lance.main,memory.main'", "USE lance"])
def test_a_new_lance_table_is_found_through_the_search_path(
    tmp_path: Path, connect: Callable[..., ld.Connection], setting: str
) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE memory.main.t AS SELECT 1 AS x")
    con.execute("SELECT x FROM t").fetchall()
    con.execute(setting)
    ld.write_dataset(pa.table({"x": [2]}), tmp_path / "t.lance")
    assert con.execute("SELECT x FROM t").fetchall() == [(2,)]


def test_new_and_dropped_tables_are_listed(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    con = connect(tmp_path)
    listed = "SELECT table_name FROM duckdb_tables() WHERE table_name LIKE 'zone%'"
    assert con.execute(listed).fetchall() == []
    ld.write_dataset(pa.table({"x": [2]}), tmp_path / "zones.lance")
    assert con.execute(listed).fetchall() == [("zones",)]


def test_a_view_over_a_deleted_table_raises_an_error(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    ld.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("CREATE VIEW over_it AS SELECT x FROM t")
    assert con.execute("SELECT x FROM over_it").fetchall() == [(1,)]
    shutil.rmtree(tmp_path / "t.lance")
    with pytest.raises((duckdb.CatalogException, ld.LanceDuckError)):
        con.execute("SELECT x FROM over_it").fetchall()


def test_internal_variables_of_the_connection_are_not_tables(connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    for name in ("query", "options", "self", "pa_table", "duckdb"):
        with pytest.raises(duckdb.Error, match=r"does not exist|not suitable"):
            con.execute(f'SELECT * FROM "{name}"')


def test_every_statement_is_foreign_if_no_lance_table_exists() -> None:
    assert "SELECT * FROM t" in ForeignTexts(TableCatalog({}))


def test_a_cached_foreign_statement_reads_a_new_lance_table(
    tmp_path: Path, connect: Callable[..., ld.Connection]
) -> None:
    con = connect(tmp_path)
    t = pa.table({"x": [1]})
    assert con.execute("SELECT x FROM t").fetchall() == [(1,)]
    ld.write_dataset(pa.table({"x": [2]}), tmp_path / "t.lance")
    assert con.execute("SELECT x FROM t").fetchall() == [(2,)]
    assert t.num_rows == 1


def test_cached_statements_read_current_caller_variables(connect: Callable[..., ld.Connection]) -> None:
    con = connect()

    def asked(mine: pa.Table) -> list[tuple[Any, ...]]:
        assert mine.num_rows == 1
        return con.execute("SELECT sum(x) FROM mine").fetchall()

    assert [asked(pa.table({"x": [value]})) for value in (1, 2, 3)] == [[(1,)], [(2,)], [(3,)]]


def test_views_over_changed_tables_read_changes_of_the_transaction(
    tmp_path: Path, connect: Callable[..., ld.Connection], rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    ld.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("CREATE VIEW seen AS SELECT count(*) AS n FROM t")
    assert rows(con, "SELECT n FROM seen") == [(2,)]
    con.execute("BEGIN")
    ld.dataset(tmp_path / "t.lance").insert(pa.table({"x": [3]}))
    before = rows(con, "SELECT n FROM seen")
    assert rows(con, "SELECT n FROM seen") == before
    con.execute("COMMIT")
    assert rows(con, "SELECT n FROM seen") == [(3,)]


def test_constants_and_their_errors_equal_those_of_duckdb(connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    assert con.execute("SELECT 42").fetchall() == [(42,)]
    assert con.sql("SELECT 1 + 1").fetchall() == [(2,)]
    assert con.rowcount == -1
    with pytest.raises(duckdb.ParserException):
        con.execute("SELECT 42 42 /")
