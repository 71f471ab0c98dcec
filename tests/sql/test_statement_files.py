"""Statement files in `statements/` run on Lance tables, and on native tables to confirm the expectations."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import duckdb
import pytest
from support.statements import StatementCase, read_cases, runs_of

import lance_duck as ld

HERE = Path(__file__).parent / "statements"
FILES = sorted(HERE.rglob("*.sql"))
QUERY = re.compile(r"(SELECT|FROM|DESCRIBE|SUMMARIZE)\b(?!.*\bnextval\b)", re.IGNORECASE | re.DOTALL)
Rows = list[tuple[Any, ...]]


class LanceTables:
    """Connections to the Lance tables of a folder."""

    is_native = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()
        self.connections: dict[str, ld.Connection] = {}

    def run(self, sql: str, on: str) -> Rows:
        """Run a statement; a query also as a relation, which must give the same rows."""
        if on not in self.connections:
            connection = ld.connect(self.folder, read_only=on == "reader")
            self.connections[on] = self.stack.enter_context(connection)
        rows = self.connections[on].execute(sql).fetchall()
        if QUERY.match(sql):
            again = self.connections[on].sql(sql).fetchall()
            assert sorted(map(repr, again)) == sorted(map(repr, rows))
        return rows


class NativeTables:
    """Connections to native tables in a database that is also called `lance`."""

    is_native = True

    def __init__(self, folder: Path) -> None:
        self.stack = ExitStack()
        self.connections = {"": self.stack.enter_context(duckdb.connect())}
        self.connections[""].execute("ATTACH ':memory:' AS lance")
        self.connections["other"] = self.stack.enter_context(self.connections[""].cursor())
        for connection in self.connections.values():
            connection.execute("SET search_path = 'memory.main,lance.main'")

    def run(self, sql: str, on: str) -> Rows:
        return self.connections[on].execute(sql).fetchall()


def runs_on(case: StatementCase, *, is_native: bool) -> bool:
    version = f"duckdb {duckdb.__version__.partition('.')[0]}"
    only_lance = "lance" in case.only or case.on == "reader"
    return not (is_native and only_lance) and case.only - {"lance"} <= {version}


Tables = type[LanceTables] | type[NativeTables]
PAIRS: list[Any] = [
    pytest.param(file, tables, id=f"{file.relative_to(HERE).with_suffix('')}-{tables.__name__}")
    for file in FILES
    for tables in ((LanceTables,) if file.parent.name == "lance" else (LanceTables, NativeTables))
]


@pytest.mark.parametrize(("file", "kind"), PAIRS)
def test_statement_files_return_their_expected_rows(
    file: Path, kind: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, cases in enumerate(runs_of(file)):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        tables = kind(folder)
        with tables.stack:
            for case in cases:
                if runs_on(case, is_native=kind.is_native):
                    _check(case.with_values({"folder": str(folder)}), tables, file)


def _check(case: StatementCase, tables: LanceTables | NativeTables, file: Path) -> None:
    try:
        case.check(lambda sql: tables.run(sql, case.on), is_native=tables.is_native)
    except Exception as error:
        raise AssertionError(f"{file.name}:{case.line}: {case.about}: {case.sql}\n{error}") from error


def test_a_statement_file_is_parsed_into_cases(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text(
        "-- A comment.\nSELECT 1;\n--> 1\n\n--only lance\nSELECT 'a;b',\n  NULL;\n--> a;b | NULL\n"
        "--on other\nFROM x;\n--! no x\nEXPLAIN y;\n--~ scan\n"
    )
    assert [(case.line, case.sql, case.rows, case.error, case.only, case.on) for case in read_cases(file)] == [
        (2, "SELECT 1", [["1"]], None, set(), ""),
        (6, "SELECT 'a;b',\n  NULL", [["a;b", "NULL"]], None, {"lance"}, ""),
        (10, "FROM x", [], "no x", set(), "other"),
        (12, "EXPLAIN y", [], None, set(), ""),
    ]


def test_cases_run_after_their_setup_and_for_each_value(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("SET a;\n--= one\nSELECT 1;\nSELECT 2;\n--= two\n--each t: x | y\n--each n: 1 | 2\nFROM {t}{n};\n")
    assert [[case.sql for case in run] for run in runs_of(file)] == [
        ["SET a", "SELECT 1", "SELECT 2"],
        *(["SET a", f"FROM {name}"] for name in ("x1", "x2", "y1", "y2")),
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("SELECT 1;\n--> 2", "'1'"),
        ("SELECT 1;", "'1'"),
        ("SELECT 1;\n--! x", "DID NOT RAISE"),
        ("SELECT 1;\n--~ x", "gave 1"),
        ("FROM x;\n--! zz", "x"),
        ("FROM x;\n--! BinderException: … x", "x"),
        ("FROM x;\n--! CatalogException: … Y … x", "x"),
    ],
)
def test_unexpected_rows_and_errors_fail_a_case(tmp_path: Path, text: str, wrong: str) -> None:
    (tmp_path / "a.sql").write_text(text)
    (case,) = read_cases(tmp_path / "a.sql")
    tables = LanceTables(tmp_path)
    with tables.stack, pytest.raises((AssertionError, duckdb.Error), match=wrong):
        case.check(lambda sql: tables.run(sql, ""), is_native=False)


@pytest.mark.parametrize("error", ["CatalogException: … x", "Table … x does not exist", "CatalogException"])
def test_an_expected_error_may_have_words_left_out(tmp_path: Path, error: str) -> None:
    tables = LanceTables(tmp_path)
    with tables.stack:
        StatementCase(1, "FROM x", error=error).check(lambda sql: tables.run(sql, ""), is_native=False)
