"""Definitions that other programs stored in a folder are SELECTs, macros and types, and run nothing else."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.errors import TableWarning

Connect = Callable[..., ld.Connection]
FIELDS = {"view": "query", "macro": "definitions", "table_macro": "definitions", "type": "definition"}
SOUND = {
    "view": ("SELECT 1 AS a", "FROM t", "FROM lance_versions('t')", "SELECT $$;$$ AS a", "SELECT ';--' AS a /* ; */"),
    "macro": ("(a) AS a + 1", "() AS ';'", "(a) AS a, (a, b) AS [a, b]"),
    "table_macro": ("() AS TABLE FROM t", '(n) AS TABLE SELECT n AS "a;b"'),
    "type": ("INTEGER", "ENUM ('a;', 'b')", "STRUCT(x INTEGER)[]", "DECIMAL(9, 2)"),
}
PARTS = (
    *("; ", ";", " -- ", "/*", "*/", "\n", "$$", "$x$", "'", "''", '"', ")", "(", "))", " lance_", "E'\\'", "\0"),
    *(" UNION SELECT 2 AS a", " AS a", "SELECT 1", "(FROM t)", "FROM t", ", (SELECT 1)", "BEGIN", "COMMIT"),
)


def store(folder: Path, objects: Mapping[str, Mapping[str, object]]) -> None:
    """Store definitions as another program can."""
    settings = {f"lance_duck.object.{key}": json.dumps(value) for key, value in objects.items()}
    ld.dataset(f"{folder}/__manifest").update_config({"lance_duck.catalog": "1", **settings})


@pytest.fixture
def folder(tmp_path: Path, connect: Connect) -> Path:
    con = connect(tmp_path / "lake")
    con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE SCHEMA s; CREATE VIEW sound AS FROM t")
    con.close()
    return tmp_path / "lake"


def hostile(attack: str) -> dict[str, dict[str, object]]:
    """Return definitions of all kinds that end with an attack."""
    objects: dict[str, dict[str, object]] = {}
    for kind, field in FIELDS.items():
        for number, text in enumerate(SOUND[kind]):
            objects[f"{kind}.{kind}_{number}"] = {field: text + attack}
    objects["view.listed"] = {"query": "FROM gone", "schema": [["a", f"INTEGER) AS a{attack}"]]}
    objects["view.named"] = {"query": "SELECT 1", "columns": [f'a") AS SELECT 1{attack}']}
    objects["view.commented"] = {"query": "SELECT 1 AS a", "comment": f"'{attack}", "column_comments": {'a"': "'"}}
    return objects


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("end", ["; ", ") ; ", " -- \n; ", " /* ; */ ; ", "'; ", "$$; ", '"; ', ";;"])
@pytest.mark.filterwarnings("ignore::lance_duck.errors.TableWarning")
def test_a_statement_after_a_definition_does_not_run(
    folder: Path, tmp_path: Path, connect: Connect, end: str, read_only: bool
) -> None:
    attack = f"{end}COPY (SELECT 1) TO '{tmp_path}/written.csv'; CREATE TABLE memory.main.more AS SELECT 1; --"
    store(folder, {**hostile(attack), f'view.x" AS SELECT 1{attack.replace(".", "")}': {"query": "SELECT 1 AS a"}})
    con = connect(folder, read_only=read_only)
    assert con.execute("FROM sound").fetchall() == [(1,)]
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name <> 'temp'").fetchall() == [("t",)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]


@pytest.mark.parametrize(
    "definition", ["ENUM (FROM t)", "ENUM ((SELECT 'a'))", "ENUM (VALUES ('a'))", "/**/ enum (TABLE t)"]
)
def test_a_stored_type_does_not_run_a_query(folder: Path, connect: Connect, definition: str) -> None:
    store(folder, {"type.e": {"definition": definition}})
    con = connect(folder)
    with pytest.warns(TableWarning, match=r"^type e is skipped: its definition is damaged: "):
        con.execute("FROM t")
    assert con.execute("SELECT 1 FROM duckdb_types() WHERE type_name = 'e'").fetchall() == []


def test_damaged_definitions_are_named_once_and_can_be_dropped(folder: Path, connect: Connect) -> None:
    store(folder, {"view.v": {"query": "SELECT 1; SELECT 2"}, "macro.m": {"definitions": "() AS 1; SELECT 2"}})
    con = connect(folder)
    with pytest.warns(TableWarning) as caught:
        con.execute("FROM t; CREATE TABLE u AS FROM t; FROM u")
    said = "is skipped: its definition is damaged: expected one statement, found 2"
    assert [str(each.message) for each in caught] == [f"macro m {said}", f"view v {said}"]
    con.execute("DROP VIEW v; DROP MACRO m")
    connect(folder).execute("FROM t")


@pytest.mark.filterwarnings("ignore::lance_duck.errors.TableWarning")
def test_random_definitions_run_nothing(folder: Path, tmp_path: Path, connect: Connect) -> None:
    choose = random.Random(35)
    copy, create = (
        f"COPY (SELECT 1) TO '{tmp_path}/written.csv'",
        "CREATE OR REPLACE TABLE memory.main.more AS SELECT 1",
    )
    for _ in range(2):
        objects = {}
        for number in range(80):
            kind = choose.choice(list(FIELDS))
            parts = choose.choices((*PARTS, *PARTS, copy, create), k=choose.randrange(1, 7))
            text = "".join(choose.choices(("", choose.choice(SOUND[kind])), (1, 4)) + parts)
            objects[f"{kind}.o{number}"] = {FIELDS[kind]: text, "comment": parts[0]}
        store(folder, objects)
        con = connect(folder, read_only=True)
        assert con.execute("FROM sound").fetchall() == [(1,)]
        names = con.execute("SELECT table_name FROM duckdb_tables() WHERE database_name <> 'temp'").fetchall()
        assert names == [("t",)]
        con.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake"]


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind in SOUND for text in SOUND[kind]])
def test_sound_definitions_with_semicolons_in_strings_and_comments_are_read(
    folder: Path, connect: Connect, recwarn: pytest.WarningsRecorder, kind: str, text: str
) -> None:
    store(folder, {f"{kind}.o": {FIELDS[kind]: text}})
    listed, column = {
        "view": ("duckdb_views()", "view_name"),
        "type": ("duckdb_types()", "type_name"),
    }.get(kind, ("duckdb_functions()", "function_name"))
    con = connect(folder)
    assert con.execute(f"SELECT DISTINCT {column} FROM {listed} WHERE {column} = 'o'").fetchall() == [("o",)]
    assert not [each for each in recwarn if issubclass(each.category, TableWarning)]
