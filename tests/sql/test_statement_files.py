"""Statements of the files in `statements/`, on Lance tables, and on DuckDB's own to prove what is expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from support.statements import Run, read_cases

import lance_duck as ld

FILES = sorted((Path(__file__).parent / "statements").glob("*.sql"))
Engine = Callable[[Path], Run]


def on_lance(folder: Path) -> Run:
    connection = ld.connect(folder)
    return lambda sql: connection.execute(sql).fetchall()


def on_duckdb(folder: Path) -> Run:
    connection = duckdb.connect()
    connection.execute("ATTACH ':memory:' AS lance")
    connection.execute("SET search_path = 'memory.main,lance.main'")
    return lambda sql: connection.execute(sql).fetchall()


@pytest.mark.parametrize("engine", [on_lance, on_duckdb])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_statements_give_the_rows_that_their_file_says(file: Path, engine: Engine, tmp_path: Path) -> None:
    is_native = engine is on_duckdb
    run = engine(tmp_path)
    for case in read_cases(file):
        if (is_native and "lance" in case.only) or ("duckdb 2" in case.only and duckdb.__version__ < "2"):
            continue
        try:
            case.check(lambda sql: run(sql.replace("{folder}", str(tmp_path))), is_native=is_native)
        except (Exception, pytest.fail.Exception) as error:
            raise AssertionError(f"{file.name}:{case.line}: {case.sql}\n{error}") from error


def test_a_file_is_read_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text(
        "-- A comment.\nSELECT 1;\n--> 1\n\n--only lance\nSELECT 'a;b',\n  NULL;\n--> a;b | NULL\nFROM x;\n--! no x\n"
    )
    assert [(case.line, case.sql, case.rows, case.error, case.only) for case in read_cases(file)] == [
        (2, "SELECT 1", [["1"]], None, set()),
        (6, "SELECT 'a;b',\n  NULL", [["a;b", "NULL"]], None, {"lance"}),
        (9, "FROM x", [], "no x", set()),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT 1;\n--> 2", "'1'"),
        ("SELECT 1;", "'1'"),
        ("SELECT 1;\n--! x", "DID NOT RAISE"),
        ("FROM x;\n--! zz", "x"),
    ],
)
def test_what_a_file_does_not_say_fails(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "a.sql").write_text(text)
    (case,) = read_cases(tmp_path / "a.sql")
    with pytest.raises((AssertionError, pytest.fail.Exception), match=wrong):
        case.check(on_lance(tmp_path), is_native=False)
