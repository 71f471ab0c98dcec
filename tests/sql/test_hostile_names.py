"""Names and values that break concatenated SQL, in every kind of statement, compared with DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

NAMES = ['a"b', "a'b", "a.b", "select", "a -- b", "$1", "日本語 🦆", "x" * 200]
MORE_NAMES = [
    '""',
    "a.lance",
    "order by",
    "a; DROP TABLE x",
    "/* a */",
    "?",
    "%s {0} \\n",
    "ünïcode",
    " a ",
    "a\tb\nc",
    "NULL",
    "rowid",
    "excluded",
]
TEXTS = [
    "'",
    '"',
    "''; DROP TABLE x; --",
    "$$ $1 ? %s {0} \\",
    "\0",
    "a\0b",
    "日本語 🦆 é",
    "",
    "\n\r\t",
    "x" * 100_000,
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    pieces = ["'" + piece.replace("'", "''") + "'" for piece in text.split("\0")]
    return pieces[0] if len(pieces) == 1 else "(" + " || chr(0) || ".join(pieces) + ")"


def answers(con: Any, statements: list[str]) -> list[Any]:
    """Return what each statement gives, or the kind of error."""
    found: list[Any] = []
    for sql in statements:
        try:
            found.append(con.execute(sql).fetchall())
        except duckdb.Error as error:
            found.append(type(error))
    return found


def on_names(table: str, name: str) -> list[str]:
    """Return statements of every kind about a table and a column of one name; its second column is `v`."""
    t, c = table, quoted(name)
    source = f"(SELECT 2 AS {c}, 'two' AS v) AS {quoted('s ' + name)}"
    on = f"{t}.{c} = {quoted('s ' + name)}.{c}"
    return [
        f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b')",
        f"INSERT INTO {t} ({c}) VALUES (3)",
        f"INSERT INTO {t} BY NAME SELECT 4 AS {c}",
        f"UPDATE {t} SET {c} = {c} + 10 WHERE {c} = 1 RETURNING {c}, {c} + 1",
        f"UPDATE {t} AS {c} SET v = 'new' WHERE {c}.{c} = 2",
        f"DELETE FROM {t} AS q USING (SELECT 3 AS {c}) AS s WHERE q.{c} = s.{c} RETURNING *",
        f"WITH {quoted('w ' + name)} AS (SELECT 4 AS k) DELETE FROM {t} WHERE {c} IN (FROM {quoted('w ' + name)})",
        f"MERGE INTO {t} USING {source} ON {on} WHEN MATCHED THEN UPDATE SET v = {quoted('s ' + name)}.v "
        f"WHEN NOT MATCHED THEN INSERT ({c}) VALUES (0) RETURNING {c}",
        f"EXPLAIN DELETE FROM {t} WHERE {c} = 99 AND false",
        f"PREPARE p AS UPDATE {t} SET v = $1 WHERE {c} = $2",
        "EXECUTE p('later', 11)",
        "BEGIN",
        f"INSERT INTO {t} VALUES (5, 'pending')",
        f"UPDATE {t} SET v = v || '!' WHERE {c} = 5",
        "COMMIT",
        f"FROM {t} ORDER BY ALL",
        f"ALTER TABLE {t} ADD COLUMN {quoted('more ' + name)} INTEGER",
        f"ALTER TABLE {t} RENAME COLUMN {c} TO {quoted('new ' + name)}",
        f"COMMENT ON COLUMN {t}.v IS {literal(name)}",
        f"FROM {t} ORDER BY ALL",
        f"TRUNCATE {t}",
        f"SELECT count(*) FROM {t}",
        f"DROP TABLE {t}",
        f"FROM {t}",
    ]


def without_plans(found: list[Any]) -> list[Any]:
    return ["plan" if isinstance(rows, list) and rows and "plan" in str(rows[0][0]) else rows for rows in found]


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, id=ascii(name)[:24]) for name in NAMES),
        *(pytest.param(name, id=ascii(name)[:24], marks=pytest.mark.slow) for name in MORE_NAMES),
    ],
)
def test_hostile_names_behave_as_in_duckdb(tmp_path: Path, name: str) -> None:
    file, column = (name.translate({ord(each): "_" for each in taken}) for taken in ("/\\", "."))
    kept = pa.table({"a": [1]})
    ld.write_dataset(kept, tmp_path / "x.lance")
    with ld.connect(tmp_path) as ours, duckdb.connect() as theirs:
        theirs.execute("ATTACH ':memory:' AS lance")
        results = []
        for con in (ours, theirs):
            table = f"lance.main.{quoted(file)}"
            con.execute(f"CREATE TABLE {table} ({quoted(column)} INTEGER, v VARCHAR)")
            results.append(without_plans(answers(con, on_names(table, column))))
        assert results[0] == results[1]
        assert ours.execute("FROM x").fetchall() == [(1,)]
        assert ours.execute("SHOW TABLES FROM lance").fetchall() == [("x",)]
    assert [path.name for path in tmp_path.iterdir()] == ["x.lance"]


@pytest.mark.parametrize("name", ["a/b", "a\\b", "..", ".", "", "a\0b", "../up"])
def test_names_with_path_parts_create_no_table(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with ld.connect(tmp_path / "folder") as con:
        with pytest.raises((InvalidInputError, duckdb.Error)):
            con.execute(f"CREATE TABLE lance.{quoted(name)} AS SELECT 1 AS a")
        assert con.execute("SHOW TABLES FROM lance").fetchall() == []
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.parametrize("as_parameter", [False, True])
def test_hostile_strings_are_stored_unchanged(tmp_path: Path, as_parameter: bool) -> None:
    ld.write_dataset(pa.table({"id": [0], "s": ["old"]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con, duckdb.connect() as theirs:
        theirs.execute("CREATE TABLE t AS SELECT 0::BIGINT AS id, 'old' AS s")
        for number, text in enumerate(TEXTS, 1):
            for each in (con, theirs):
                value, values = ("$1", [text]) if as_parameter else (literal(text), [])
                each.execute(f"INSERT INTO t VALUES ({number}, {value})", values)
                each.execute(f"UPDATE t SET s = {value} || '.' WHERE s = {value}", values)
                each.execute(
                    f"MERGE INTO t USING (SELECT {value} AS s) AS q ON t.s = q.s || '.' "
                    f"WHEN MATCHED AND t.s LIKE '%.' THEN UPDATE SET s = q.s || {value}",
                    values,
                )
                each.execute(f"DELETE FROM t WHERE id = {number - 1} AND s IS DISTINCT FROM {value} || {value}", values)
        rows = con.execute("FROM t ORDER BY id").fetchall()
        assert rows == theirs.execute("FROM t ORDER BY id").fetchall()
        assert rows[-1] == (len(TEXTS), TEXTS[-1] * 2)


def test_hostile_strings_work_as_messages_settings_and_comments(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": [0]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        for text in (text for text in TEXTS if len(text) < 1000 and "\0" not in text):
            con.execute(f"COMMENT ON TABLE t IS {literal(text)}")
            con.execute(f"CALL lance_set_config('t', 'k', {literal(text)})")
            con.execute(
                f"BEGIN; CALL lance_set_commit_message('me', {literal(text)}); INSERT INTO t VALUES (1); COMMIT"
            )
            assert con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 't'").fetchall() == [(text,)]
            assert con.execute("SELECT value FROM lance_config('t') WHERE key = 'k'").fetchall() == [(text,)]
