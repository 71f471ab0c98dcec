"""Statements that name nothing of ours go straight to DuckDB, and mean what they meant."""

from __future__ import annotations

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
def test_texts_are_read_by_their_words(tmp_path: Path, sql: str, is_foreign: bool) -> None:
    ld.write_dataset(pa.table({"x": [1]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        texts = ForeignTexts(con._catalog)
        assert [sql in texts, sql in texts] == [is_foreign] * 2


def test_no_table_at_all_makes_no_text_ours() -> None:
    assert "SELECT * FROM t" in ForeignTexts(TableCatalog({}))


def test_a_table_that_comes_is_read_by_a_text_that_was_foreign(
    tmp_path: Path, connect: Callable[..., ld.Connection]
) -> None:
    con = connect(tmp_path)
    t = pa.table({"x": [1]})
    assert con.execute("SELECT x FROM t").fetchall() == [(1,)]
    ld.write_dataset(pa.table({"x": [2]}), tmp_path / "t.lance")
    assert con.execute("SELECT x FROM t").fetchall() == [(2,)]
    assert t.num_rows == 1


def test_variables_are_those_of_the_caller_each_time(connect: Callable[..., ld.Connection]) -> None:
    con = connect()

    def asked(mine: pa.Table) -> list[tuple[Any, ...]]:
        assert mine.num_rows == 1
        return con.execute("SELECT sum(x) FROM mine").fetchall()

    assert [asked(pa.table({"x": [value]})) for value in (1, 2, 3)] == [[(1,)], [(2,)], [(3,)]]


def test_a_transaction_reads_views_over_its_own_changes(
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


def test_constants_and_their_errors_are_those_of_duckdb(connect: Callable[..., ld.Connection]) -> None:
    con = connect()
    assert con.execute("SELECT 42").fetchall() == [(42,)]
    assert con.sql("SELECT 1 + 1").fetchall() == [(2,)]
    assert con.rowcount == -1
    with pytest.raises(duckdb.ParserException):
        con.execute("SELECT 42 42 /")
