"""`con.prepare`: statements that run many times, and those that find their rows without DuckDB."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.direct import DirectReads
from lance_duck.errors import InvalidInputError, WrongTypeError

BY_ID = "SELECT name FROM t WHERE id = ?"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rows = pa.table({"id": range(50), "name": [f"name {i}" for i in range(50)]})
    ld.write_dataset(rows, tmp_path / "t.lance").create_scalar_index("id", "BTREE")
    return tmp_path


@pytest.fixture
def con(place: Path) -> Iterator[ld.Connection]:
    with ld.connect(place) as connection:
        yield connection


@contextmanager
def answered() -> Iterator[list[bool]]:
    """Note whether each statement is answered without DuckDB."""
    answers: list[bool] = []
    answer = DirectReads.answer

    def noted(self: DirectReads, *arguments: Any, **options: Any) -> bool:
        answers.append(answer(self, *arguments, **options))
        return answers[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DirectReads, "answer", noted)
        yield answers


def test_a_prepared_select_gives_the_rows_of_each_key(con: ld.Connection) -> None:
    with con.prepare(BY_ID) as ask, answered() as answers:
        assert ask.execute([7]).fetchall() == [("name 7",)]
        assert ask([8]).fetchone() == ("name 8",)
        assert ask([99]).fetchall() == []
        assert ask([9]).df().to_dict() == {"name": {0: "name 9"}}
        assert ask([10]).description[0][0] == "name"
        assert con.fetchall() == [("name 10",)]
    assert answers == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("sql", "values", "rows"),
    [
        ("SELECT name FROM t WHERE id IN ($1, 3, $1)", [5], [("name 3",), ("name 5",)]),
        ("SELECT t.id AS k, name, id FROM t WHERE t.id = $key", {"key": 4}, [(4, "name 4", 4)]),
        ("SELECT name FROM lance.t WHERE id = 6", None, [("name 6",)]),
        ("SELECT * FROM t WHERE id = 6", None, [(6, "name 6")]),
    ],
)
def test_numbered_and_named_parameters_and_constants_find_rows_by_the_index(
    con: ld.Connection, sql: str, values: Any, rows: list[Any]
) -> None:
    ask = con.prepare(sql)
    with answered() as answers:
        assert [ask(values).fetchall() for _ in range(2)] == [rows, rows]
    assert answers == [False, True]


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT count(*) FROM t", [(50,)]),
        ("select COUNT( * ) as n, count(id) from lance.t;", [(50, 50)]),
        ("SELECT min(id), max(id) AS most, count(*) FROM t", [(0, 49, 50)]),
    ],
)
def test_aggregates_of_whole_columns_are_answered_from_metadata_and_indexes(
    con: ld.Connection, sql: str, rows: list[Any]
) -> None:
    def ask() -> tuple[Any, Any]:
        titles = [each[:2] for each in con.execute(sql).description or ()]
        return titles, con.fetchall()

    by_duckdb = ask()
    with answered() as answers:
        assert ask() == ask() == by_duckdb
    assert (by_duckdb[1], answers) == (rows, [True, True])


def test_all_columns_and_vectors_have_the_values_of_duckdb(tmp_path: Path) -> None:
    vectors = pa.array([[0.1, None, float("inf")], None, [1, 2, 3]], pa.list_(pa.float32(), 3))
    days = pa.array([0, None, 20_000], pa.date32())
    rows = pa.table({"id": [7, 8, 9], "v": vectors, "n": pa.array([[1], [2], None], pa.list_(pa.int8(), 1)), "d": days})
    ld.write_dataset(rows, tmp_path / "t.lance").create_scalar_index("id", "BTREE")
    con = ld.connect(tmp_path)
    by_duckdb = con.execute("SELECT * FROM t WHERE id IN (7, 8, 9)").fetchall()
    with answered() as answers:
        direct = con.execute("SELECT * FROM t WHERE id IN (7, 8, 9)").fetchall()
        con.execute("ALTER TABLE t DROP v")
        narrow = con.execute("SELECT * FROM t WHERE id IN (7, 8, 9)").fetchall()
    assert (repr(direct), answers) == (repr(by_duckdb), [True, False, False])
    assert narrow == [(row[0], *row[2:]) for row in by_duckdb]


@pytest.mark.parametrize(
    "sql", ["SELECT max(t), max(d) FROM t", "SELECT * FROM t WHERE id = 1", "SELECT t FROM t WHERE id = 1"]
)
def test_times_that_python_does_not_represent_are_returned_by_duckdb(tmp_path: Path, sql: str) -> None:
    far = pa.array([2**62], pa.int64()).cast(pa.timestamp("us")), pa.array([2**31 - 1], pa.int32()).cast(pa.date32())
    table = ld.write_dataset(pa.table({"id": [1], "t": far[0], "d": far[1]}), tmp_path / "t.lance")
    for column in ("id", "t", "d"):
        table.create_scalar_index(column, "BTREE")
    con = ld.connect(tmp_path)
    rows = [con.execute(sql).fetchall() for _ in range(3)]
    assert rows[1:] == rows[:2]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(name) FROM t WHERE id < 7",
        "SELECT count(DISTINCT name) FROM t",
        "SELECT max(name) FROM t",
        "SELECT count(*) FROM t a, t b",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT count(*) + 1 FROM t",
    ],
)
def test_aggregates_that_require_a_scan_are_computed_by_duckdb(con: ld.Connection, sql: str) -> None:
    with answered() as answers:
        first, again = (con.execute(sql).fetchall() for _ in range(2))
    assert (first == again, answers) == (True, [False, False])


def test_aggregates_are_those_of_the_newest_version_with_the_current_meaning(con: ld.Connection, place: Path) -> None:
    def ask() -> list[Any]:
        row, again = (con.execute("SELECT count(*), max(id) FROM t").fetchall() for _ in range(2))
        assert row == again
        return row

    assert ask() == [(50, 49)]
    lance.dataset(place / "t.lance").delete("id = 49")
    assert ask() == [(49, 48)]
    con.begin()
    con.execute("INSERT INTO t VALUES (99, 'mine')")
    assert ask() == [(50, 99)]
    con.rollback()
    assert ask() == [(49, 48)]
    con.execute("CREATE TEMP MACRO max(x) AS 7")
    assert ask() == [(49, 7)]
    con.execute("DROP MACRO temp.max")
    con.execute("DROP INDEX id_idx ON t")
    con.execute("ALTER TABLE t ALTER id TYPE VARCHAR")
    assert ask() == [(49, "9")]
    con.execute("CREATE TEMP TABLE t AS SELECT 7 AS id")
    assert ask() == [(1, 7)]


@pytest.mark.filterwarnings("ignore:Arrow output")
def test_statements_are_answered_without_duckdb_after_their_rows_were_read_as_arrow(con: ld.Connection) -> None:
    ask = con.prepare(BY_ID)
    assert [ask([9]).fetch_arrow_table().to_pydict() for _ in range(2)] == [{"name": ["name 9"]}] * 2
    with answered() as answers:
        assert ask([9]).fetchall() == [("name 9",)]
    assert answers == [True]


def test_every_other_statement_runs_as_without_prepare(con: ld.Connection) -> None:
    insert = con.prepare("INSERT INTO t VALUES (?, ?)")
    assert insert([50, "new"]).fetchall() == [(1,)]
    assert con.prepare("UPDATE t SET name = $name WHERE id = $id")({"id": 50, "name": "newer"}).fetchall() == [(1,)]
    assert con.prepare("SELECT upper(name) FROM t WHERE id = ? LIMIT 1")([50]).fetchall() == [("NEWER",)]
    assert con.prepare("SELECT ? + 1")([2]).fetchall() == [(3,)]
    assert con.prepare("PREPARE p AS SELECT name FROM t WHERE id = $1")().fetchall() == []
    assert [con.prepare("EXECUTE p(7)")().fetchall() for _ in range(2)] == [[("name 7",)]] * 2


def test_each_run_reads_the_newest_version_whoever_wrote_it(con: ld.Connection, place: Path) -> None:
    ask = con.prepare(BY_ID)
    theirs = lance.dataset(place / "t.lance")
    assert [ask([7]).fetchall() for _ in range(2)] == [[("name 7",)]] * 2
    theirs.update({"name": "'theirs'"}, where="id = 7")
    assert [ask([7]).fetchall() for _ in range(2)] == [[("theirs",)]] * 2
    theirs.delete("id = 7")
    assert ask([7]).fetchall() == []
    ld.dataset(place / "t.lance").drop_columns(["name"])
    with pytest.raises(duckdb.BinderException, match="name"):
        ask([7])
    con.execute("DROP TABLE t")
    with pytest.raises(duckdb.CatalogException, match="t does not exist"):
        ask([7])
    con.execute("CREATE TABLE t AS SELECT 7 AS id, 8 AS name")
    assert ask([7]).fetchall() == [(8,)]


def test_a_transaction_reads_its_own_version_and_changes(con: ld.Connection, place: Path) -> None:
    ask = con.prepare(BY_ID)
    assert [ask([7]).fetchall() for _ in range(2)] == [[("name 7",)]] * 2
    con.begin()
    con.execute("UPDATE t SET name = 'mine' WHERE id = 7")
    assert ask([7]).fetchall() == [("mine",)]
    con.rollback()
    assert ask([7]).fetchall() == [("name 7",)]


@pytest.mark.parametrize("changes", [("SET default_collation = 'nocase'",), ("SET enable_profiling = 'no_output'",)])
def test_settings_that_change_what_duckdb_does_leave_statements_to_it(
    con: ld.Connection, changes: tuple[str, ...]
) -> None:
    ask = con.prepare(BY_ID)
    ask([7]).fetchall(), ask([7]).fetchall()
    for sql in changes:
        con.execute(sql)
    with answered() as answers:
        assert [ask([7]).fetchall() for _ in range(3)] == [[("name 7",)]] * 3
    assert answers == [False] * 3


def test_a_name_that_gets_another_meaning_is_looked_up_again(con: ld.Connection) -> None:
    ask = con.prepare(BY_ID)
    ask([7]).fetchall(), ask([7]).fetchall()
    con.execute("CREATE TEMP TABLE t AS SELECT 7 AS id, 'temporary' AS name")
    assert [ask([7]).fetchall() for _ in range(2)] == [[("temporary",)]] * 2
    con.execute("DROP TABLE temp.t")
    assert [ask([7]).fetchall() for _ in range(2)] == [[("name 7",)]] * 2


def test_rows_of_an_earlier_statement_are_dropped(con: ld.Connection) -> None:
    ask = con.prepare(BY_ID)
    ask([7]).fetchall(), ask([7]).fetchall()
    assert con.execute("SELECT * FROM range(100_000)").fetchone() == (0,)
    assert ask([8]).fetchall() == [("name 8",)]
    assert ask([9]).fetchone() == ("name 9",)
    assert con.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("", InvalidInputError, "number of statements"),
        ("SELECT 1; SELECT 2", InvalidInputError, "number of statements"),
        (7, WrongTypeError, "query"),
    ],
)
def test_anything_but_one_statement_is_refused(con: ld.Connection, query: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        con.prepare(query)


def test_wrong_parameters_raise_the_errors_of_duckdb_and_leave_the_statement_usable(con: ld.Connection) -> None:
    ask = con.prepare(BY_ID)
    for _ in range(2):
        for values in ([], [1, 2], {"id": 1}, ["seven"]):
            with pytest.raises(duckdb.Error):
                ask(values).fetchall()
        assert [ask([value]).fetchall() for value in (None, 2**70, 7.0, "7", True)] == [
            [],
            [],
            [("name 7",)],
            [("name 7",)],
            [("name 1",)],
        ]


def test_a_closed_statement_or_connection_is_refused(con: ld.Connection) -> None:
    with con.prepare(BY_ID) as ask:
        ask([7]).fetchall(), ask([7]).fetchall()
    assert repr(ask) == "<PreparedStatement, closed>"
    with pytest.raises(InvalidInputError, match="closed"):
        ask([7])
    other = con.prepare(BY_ID)
    assert repr(other) == "<PreparedStatement of SELECT name FROM t WHERE id = ?>"
    con.close()
    with pytest.raises(duckdb.ConnectionException):
        other([7])


def test_cursors_of_several_threads_find_the_same_rows(con: ld.Connection) -> None:
    def ask(first: int) -> list[Any]:
        with con.cursor() as cursor:
            statement = cursor.prepare(BY_ID)
            return [statement([first + i]).fetchall() for i in range(20)]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, range(8)))
    assert found == [[[(f"name {first + i}",)] for i in range(20)] for first in range(8)]


IN_A_CHILD = """
import os, sys
import lance_duck as ld

ask = ld.connect(sys.argv[1]).prepare(sys.argv[2])
for _ in range(2):
    ask([7]).fetchall()
if (child := os.fork()) == 0:
    os._exit(0 if ask([8]).fetchall() == [("name 8",)] else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_runs_the_statement_on_its_copy_of_the_database(place: Path) -> None:
    assert subprocess.run([sys.executable, "-c", IN_A_CHILD, place, BY_ID], timeout=60, check=False).returncode == 0


def test_a_confined_connection_finds_rows_by_the_index(place: Path) -> None:
    with ld.connect(place, confined=True) as con, answered() as answers:
        ask = con.prepare(BY_ID)
        assert [ask([7]).fetchall() for _ in range(2)] == [[("name 7",)]] * 2
    assert answers[-1]


def test_an_interrupt_stops_a_lookup(con: ld.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = con.prepare(BY_ID)
    ask([7]).fetchall(), ask([7]).fetchall()
    monkeypatch.setattr(DirectReads, "_newest_rows", lambda *_: con.interrupt())
    with pytest.raises(duckdb.InterruptException):
        ask([7])
    monkeypatch.undo()
    assert ask([7]).fetchall() == [("name 7",)]
