"""Statements with few indexed rows return the same rows as plain DuckDB."""

from __future__ import annotations

import datetime as dt
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.rules import point_lookup
from lance_duck.duck.run import prefetch_rows
from lance_duck.duck.statement.text import Statement

STATEMENTS = 3000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 150
ROWS = 500
NAN = float("nan")


def _table() -> pa.Table:
    rng = random.Random(8)

    def column(values: list[Any], type_: pa.DataType) -> pa.Array:
        return pa.array([rng.choice([*values, None]) for _ in range(ROWS)], type_)

    return pa.table(
        {
            "id": pa.array(range(ROWS), pa.int64()),
            "k": column(list(range(60)), pa.int32()),
            "s": column(["", "a", "A", "ß", "x\0y", "it's", '"q"'], pa.string()),
            "d": column([0.0, -0.0, 1.5, NAN, float("inf"), 1e300], pa.float64()),
            "f": column([0.1, NAN, -2.5], pa.float32()),
            "u": column([0, 2**64 - 1], pa.uint64()),
            "b": column([True, False], pa.bool_()),
            "day": column([dt.date(2020, 1, 1), dt.date(1, 1, 1)], pa.date32()),
            "vec": column([[1.0, 2.0], [NAN, 0.1]], pa.list_(pa.float32(), 2)),
            "st": column([{"a": 1}, {"a": None}], pa.struct([("a", pa.int64())])),
        }
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("rows")
    table = _table()
    dataset = ld.write_dataset(table, folder / "t.lance", max_rows_per_file=200)
    for name in ("id", "k", "d"):
        dataset.create_scalar_index(name, "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    with ld.connect(folder) as ours, duckdb.connect() as theirs:
        theirs.register("source", table)
        theirs.execute("CREATE TABLE t AS FROM source")
        yield ours, theirs


@pytest.fixture
def first(monkeypatch: pytest.MonkeyPatch, carried_out: Callable[[Callable[..., Any]], list[bool]]) -> list[bool]:
    """For each statement with a simple WHERE, whether rows were read first; an index is worth it for any table."""
    monkeypatch.setattr(ld.LanceDataset, "index_estimate", lambda *_: 1)
    return carried_out(prefetch_rows.run)


COLUMNS = [
    "*",
    "id, s",
    "id, d, f, u, b",
    "id, vec",
    "id, day, st",
    "count(*)",
    "count(*), max(id)",
    "max(id), sum(k)",
    "t.id + 1 AS id, s",
]
CONDITIONS: list[tuple[str, Callable[[random.Random], list[Any]]]] = [
    ("id = ?", lambda r: [r.randrange(ROWS + 9)]),
    ("t.id IN (?, ?, 7)", lambda r: [r.randrange(ROWS), r.randrange(ROWS)]),
    ("id BETWEEN ? AND ? AND b", lambda r: [a := r.randrange(ROWS), a + r.randrange(60)]),
    ("k = ? AND lower(s) <> 'a'", lambda r: [r.randrange(60)]),
    ("k = ? AND d >= ?", lambda r: [r.randrange(60), r.choice([0.0, NAN, 1.5])]),
    ("s = ?", lambda r: [r.choice(["a", "ß", "x\0y", "it's", "nope"])]),
    ("d = ? AND k < 9", lambda r: [r.choice([0.0, -0.0, NAN, 1.5])]),
    ("k = 5 OR id = ?", lambda r: [r.randrange(ROWS)]),
    ("id = ? AND id IN (SELECT k FROM t)", lambda r: [r.randrange(60)]),
]


def test_results_equal_those_of_duckdb(pair: tuple[Any, Any], first: list[bool]) -> None:
    ours, theirs = pair
    rng = random.Random(1)
    for _ in range(STATEMENTS):
        columns = rng.choice(COLUMNS)
        condition, values = rng.choice(CONDITIONS)
        parameters = values(rng)
        name = rng.choice(["t", "t AS t", "T"])
        extra = rng.random() < 0.2 and "(" not in columns
        sql = f"SELECT {'? AS p, ' if extra else ''}{columns} FROM {name} WHERE {condition}"
        sql += "" if "(" in columns else " ORDER BY ALL"
        parameters = ["first", *parameters] if extra else parameters
        expected = theirs.execute(sql, parameters).fetchall()
        assert repr(ours.execute(sql, parameters).fetchall()) == repr(expected), (sql, parameters)
    assert sum(first) > STATEMENTS / 2


def test_named_parameters_and_no_parameters_are_accepted(pair: tuple[Any, Any], first: list[bool]) -> None:
    for sql, parameters in (
        ("SELECT id, $x AS x FROM t WHERE id = $n", {"n": 5, "x": "y"}),
        ("SELECT id, k FROM t WHERE id = 5", None),
        ("SELECT id, k FROM t WHERE id IN (5, 6) ORDER BY id", []),
        ("FROM t SELECT id, k WHERE id = 5;", None),
        ("SELECT id, k FROM t WHERE id = $1 AND k IS NOT DISTINCT FROM k", [5]),
    ):
        assert pair[0].execute(sql, parameters).fetchall() == pair[1].execute(sql, parameters).fetchall()
    assert all(first)


def test_types_and_names_equal_those_of_duckdb(pair: tuple[Any, Any], first: list[bool]) -> None:
    for sql in ("SELECT * FROM t WHERE id = ?", "SELECT * EXCLUDE (st) FROM t WHERE id = ?"):
        for row in (5, ROWS + 1):
            found, expected = (each.execute(sql, [row]).description for each in pair)
            assert [(name, str(type_)) for name, type_, *_ in found] == [(n, str(t)) for n, t, *_ in expected]


def test_lookups_see_commits_and_temporary_names_take_precedence(
    tmp_path: Path, connect: Callable[..., ld.Connection], first: list[bool]
) -> None:
    dataset = ld.write_dataset(
        pa.table({"id": pa.array(range(100), pa.int64()), "v": ["a"] * 100}), tmp_path / "t.lance"
    )
    dataset.create_scalar_index("id", "BTREE")
    con = connect(tmp_path)
    sql = "SELECT v FROM t WHERE id = ?"
    assert con.execute(sql, [3]).fetchall() == [("a",)]
    dataset.update({"v": "'b'"}, where="id = 3")
    assert con.execute(sql, [3]).fetchall() == [("b",)]
    con.execute("BEGIN")
    assert con.execute(sql, [3]).fetchall() == [("b",)]
    con.execute("CREATE TEMP TABLE t AS SELECT 3 AS id, 'mine' AS v")
    assert con.execute(sql, [3]).fetchall() == [("mine",)]
    con.execute("ROLLBACK")
    assert con.execute(sql, [3]).fetchall() == [("b",)]
    con.native.execute("CREATE TEMP VIEW t AS SELECT 3 AS id, 'view' AS v")
    assert con.execute(sql, [3]).fetchall() == [("view",)]
    assert first == [True, True, True, False, True, False]


def test_cached_lookups_depend_on_values_types_and_version(
    tmp_path: Path, connect: Callable[..., ld.Connection], first: list[bool]
) -> None:
    rows = {"id": [0, 1, 2], "d": [0.0, 1.5, NAN], "s": ["0", "1", "1.5"], "b": [False, True, None]}
    table = pa.table(rows)
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    for name in ("id", "d"):
        dataset.create_scalar_index(name, "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    con = connect(tmp_path)
    values: list[Any] = [1, True, 1.0, 1.5, "1", "1.5", 0, False, -0.0, 0.0, NAN, None, dt.date(2020, 1, 1)]
    with duckdb.connect() as native:
        native.register("source", table)
        native.execute("CREATE TABLE t AS FROM source")
        rng = random.Random(5)
        for column in ("id", "d", "s"):
            sql = f"SELECT id, b FROM t WHERE {column} = ? ORDER BY id"
            for value in rng.choices(values, k=40):
                answers = []
                for each in (con, native):
                    try:
                        answers.append(each.execute(sql, [value]).fetchall())
                    except duckdb.Error as error:
                        answers.append([(type(error),)])
                assert answers[0] == answers[1], (sql, value)
    assert sum(first) > 20
    sql = "SELECT s FROM t WHERE id = 1"
    old = con.execute(sql).fetchall()
    con.execute("BEGIN")
    con.execute("UPDATE t SET s = 'new' WHERE id = 1")
    assert con.execute(sql).fetchall() == [("new",)]
    con.execute("ROLLBACK")
    assert con.execute(sql).fetchall() == old == [("1",)]
    con.execute("DELETE FROM t WHERE id = 1")
    assert con.execute(sql).fetchall() == []


def test_settings_apply_to_cached_lookups(
    tmp_path: Path, connect: Callable[..., ld.Connection], first: list[bool]
) -> None:
    dataset = ld.write_dataset(pa.table({"s": ["a", "A", "b"]}), tmp_path / "t.lance")
    dataset.create_scalar_index("s", "BITMAP")
    con = connect(tmp_path)
    sql = "SELECT s FROM t WHERE s = 'a' ORDER BY ALL"
    assert con.execute(sql).fetchall() == [("a",)]
    con.execute("SET default_collation = 'nocase'")
    assert len(con.execute(sql).fetchall()) == 2
    con.execute("RESET default_collation")
    assert con.execute(sql).fetchall() == [("a",)]
    assert first == [True, False, True]


def test_few_keys_are_looked_up_first_but_many_rows_are_not(
    tmp_path: Path, connect: Callable[..., ld.Connection], carried_out: Callable[[Callable[..., Any]], list[bool]]
) -> None:
    rows = 30_000
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "third": pa.array([i // 10_000 for i in range(rows)])})
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    for name in ("id", "third"):
        dataset.create_scalar_index(name, "BTREE")
    con, carried = connect(tmp_path), carried_out(prefetch_rows.run)
    keys = [7, 9_000, 15_000, 22_000, 29_999]
    assert con.execute("SELECT id FROM t WHERE id IN (?,?,?,?,?) ORDER BY id", keys).fetchall() == [(k,) for k in keys]
    assert con.execute("SELECT count(*), max(id) FROM t WHERE third IN (1, 5)").fetchall() == [(10_000, 19_999)]
    long = ", ".join(str(key) for key in range(0, 30_000, 1_000))
    assert con.execute(f"SELECT count(*), max(id) FROM t WHERE id IN ({long})").fetchall() == [(30, 29_000)]
    dataset.insert(pa.table({"id": [30_000, 7], "third": [3, 3]}))
    sql = "SELECT id, third FROM t WHERE id IN (7, 9000, 15000, 22000, 30000) ORDER BY ALL"
    expected = [(7, 0), (7, 3), (9_000, 0), (15_000, 1), (22_000, 2), (30_000, 3)]
    assert con.execute(sql).fetchall() == expected
    assert carried[0]
    assert not any(carried[1:])  # a SELECT that ends with whole numbers is tried without them first


def test_errors_equal_those_of_duckdb(pair: tuple[Any, Any], first: list[bool]) -> None:
    for sql, parameters in (
        ("SELECT nope FROM t WHERE id = ?", [1]),
        ("SELECT id FROM t WHERE id = ?", []),
        ("SELECT id FROM t WHERE id = ?", [1, 2]),
        ("SELECT id FROM t WHERE id = 'x'", None),
    ):
        with pytest.raises(duckdb.Error) as theirs:
            pair[1].execute(sql, parameters)
        with pytest.raises(type(theirs.value)):
            pair[0].execute(sql, parameters)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t JOIN u USING (id) WHERE id = 1",
        "SELECT id FROM t, u WHERE id = 1",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t WHERE id = 1",
        "SELECT id FROM (SELECT * FROM t) WHERE id = 1",
        "SELECT id FROM t TABLESAMPLE 10% WHERE id = 1",
        "SELECT id FROM t WHERE lower(s) = 'a'",
        "SELECT -id AS id FROM t WHERE id = 1",
        "SELECT id FROM t WHERE id = 1 UNION ALL SELECT 2",
        "SELECT id FROM t WHERE id = 1; SELECT 2",
        "DELETE FROM t WHERE id = 1",
        "EXPLAIN SELECT id FROM t WHERE id = 1",
        "SELECT count(*) AS n FROM t WHERE id = 1",
    ],
)
def test_unsupported_lookups_are_not_rewritten(sql: str) -> None:
    assert point_lookup.find(Statement.of(sql)) == ()


def test_row_counts_come_from_the_manifest(tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"x": list(range(10))}), tmp_path / "t.lance")
    table.delete("x = 3")
    sql = "SELECT count(*) FROM t"
    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT count(*) FROM t AS a").fetchall() == [(9,)] == con.execute(sql).fetchall()
        assert [column[0] for column in con.description] == ["count_star()"]
        assert con.execute("SELECT count(*) AS n FROM t;").fetchall() == [(9,)]
        assert [(name, str(type_)) for name, type_, *_ in con.description] == [("n", "BIGINT")]
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (10), (11)")
        assert con.execute(sql).fetchall() == [(11,)]
        table.insert(pa.table({"x": [20]}))
        assert con.execute(sql).fetchall() == [(11,)]
        con.execute("ROLLBACK")
        assert con.execute(sql).fetchall() == [(10,)]
        con.execute("CREATE TEMP TABLE t AS SELECT 1 AS x")
        assert con.execute(sql).fetchall() == [(1,)]


def test_a_user_macro_named_count_takes_precedence(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con, duckdb.connect() as native:
        native.execute("CREATE TABLE t AS SELECT unnest([1, 2]) AS x")
        answers = []
        for each in (con, native):
            each.execute("CREATE MACRO count_star() AS 'mine'")
            answers.append(each.execute("SELECT count(*) FROM t").fetchall())
        assert answers[0] == answers[1]
