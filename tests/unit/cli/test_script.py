"""Texts of several statements."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_duck.cli.sql.places import places_and_sql
from lance_duck.cli.sql.results import distinct
from lance_duck.cli.sql.script import Script, is_complete, read_script
from lance_duck.errors import InvalidInputError, NotFoundError


@pytest.mark.parametrize(
    ("sql", "statements"),
    [
        ("", []),
        (" \n ", []),
        ("SELECT 1", [("SELECT 1", 1)]),
        ("SELECT 1;", [("SELECT 1", 1)]),
        ("SELECT 1;\n\nSELECT ';'; ", [("SELECT 1", 1), ("SELECT ';'", 3)]),
        ("-- one; two\nSELECT 1 -- ;\n;SELECT 2", [("SELECT 1 -- ;", 2), ("SELECT 2", 3)]),
        (";;\n;FROM ü;\nFROM x", [("FROM ü", 2), ("FROM x", 3)]),
        ("SELECT 1;\n-- the end", [("SELECT 1", 1), ("-- the end", 2)]),
        ("SELECT 1;\n/* not closed; SELECT 2", [("SELECT 1", 1), ("/* not closed; SELECT 2", 2)]),
        ("SELECT 1; SELECT 'not closed; SELECT 2", [("SELECT 1", 1), ("SELECT 'not closed; SELECT 2", 1)]),
        ("SELECT $$;$$;SELECT 2", [("SELECT $$;$$", 1), ("SELECT 2", 1)]),
    ],
)
def test_a_script_is_split_into_statements_with_line_numbers(sql: str, statements: list[tuple[str, int]]) -> None:
    assert [(statement.text, statement.line) for statement in Script(sql).statements()] == statements


@pytest.mark.parametrize(
    ("sql", "pieces"),
    [
        (".tables", [(".tables", 1, True)]),
        ("SELECT 1;\n .mode json\nSELECT 2", [("SELECT 1", 1, False), (".mode json", 2, True), ("SELECT 2", 3, False)]),
        ("-- one\n.quit\nSELECT 1;", [("-- one", 1, False), (".quit", 2, True), ("SELECT 1", 3, False)]),
        ("quit", [(".quit", 1, True)]),
        ("SELECT 1; -- so\nexit;\n", [("SELECT 1", 1, False), ("-- so", 1, False), (".quit", 2, True)]),
        ("\\q\n\\d", [(".quit", 1, True), (".tables", 2, True)]),
        ("SELECT 1\n.quit\n", [("SELECT 1\n.quit", 1, False)]),
        ("SELECT ';\n.quit\n';", [("SELECT ';\n.quit\n'", 1, False)]),
        ("SELECT $$;\nquit\n$$", [("SELECT $$;\nquit\n$$", 1, False)]),
        ("SELECT 1;\n/*;\n.quit\n*/", [("SELECT 1", 1, False), ("/*;\n.quit\n*/", 2, False)]),
        ("SELECT 1 AS\nexit\n;", [("SELECT 1 AS\nexit", 1, False)]),
    ],
)
def test_a_line_between_statements_may_be_a_command(sql: str, pieces: list[tuple[str, int, bool]]) -> None:
    assert [(piece.text, piece.line, piece.is_command) for piece in Script(sql).statements()] == pieces


def test_error_lines_refer_to_the_script_file() -> None:
    *_, last = Script("SELECT 1;\n" * 8 + "SELECT\n  x", "a.sql").statements()
    assert last.located("Binder Error: no x\nLINE 2:   x\n          ^") == (
        "a.sql:10: Binder Error: no x\nLINE 10:   x\n           ^"
    )
    assert last.located("no line") == "a.sql:9: no line"


def test_errors_of_an_argument_name_no_file() -> None:
    (_, second) = Script("SELECT 1;\nSELECT x").statements()
    assert second.located("no x\nLINE 1: SELECT x\n               ^") == "no x\nLINE 2: SELECT x\n               ^"


@pytest.mark.parametrize(
    ("sql", "complete"),
    [
        ("", True),
        ("SELECT 1", False),
        ("SELECT 1;", True),
        ("SELECT 1; -- so", True),
        ("SELECT ';", False),
        ("SELECT 1; SELECT 2", False),
        ("-- only a comment", False),
    ],
)
def test_a_statement_is_complete_with_its_semicolon(sql: str, complete: bool) -> None:
    assert is_complete(sql) is complete


@pytest.mark.parametrize(
    ("words", "places", "sql"),
    [
        ([], [], None),
        (["data"], ["data"], None),
        (["SELECT 1"], [], "SELECT 1"),
        (["-"], [], "-"),
        (["data", "-"], ["data"], "-"),
        (["data", "SELECT 1"], ["data"], "SELECT 1"),
        (["data", "CHECKPOINT"], ["data"], "CHECKPOINT"),
        (["a.lance", "b.lance"], ["a.lance", "b.lance"], None),
        (["a.lance", "b.lance/", "FROM a"], ["a.lance", "b.lance/"], "FROM a"),
        (["s3://bucket/a.lance"], ["s3://bucket/a.lance"], None),
        (["FROM 's3://bucket/a.lance'"], [], "FROM 's3://bucket/a.lance'"),
        (["data", "FROM'x.lance'"], ["data"], "FROM'x.lance'"),
    ],
)
def test_the_last_argument_is_sql_unless_it_is_a_path(words: list[str], places: list[str], sql: str | None) -> None:
    assert places_and_sql(words) == (places, sql)


def test_a_folder_name_with_a_space_is_a_path(tmp_path: Path) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    assert places_and_sql([str(folder)]) == ([str(folder)], None)


def test_duplicate_column_names_are_numbered() -> None:
    assert distinct(["a", "b", "a", "a_1", "a"]) == ["a", "b", "a_2", "a_1", "a_3"]


def test_files_that_are_not_text_are_rejected(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="not valid UTF-8"):
        read_script(tmp_path / "binary")
    with pytest.raises(InvalidInputError, match="not valid UTF-8"):
        read_script(tmp_path)
    with pytest.raises(NotFoundError, match="no such SQL file"):
        read_script(tmp_path / "missing.sql")
