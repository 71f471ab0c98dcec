"""Statements and transactions read all tables in one state, while other connections commit groups."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pytest
from sql.group_support import rows
from support.faults import Do, Faults, Plan

import lance_duck as ld
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.errors import NotFoundError, RetryableError

Connect = Callable[..., ld.Connection]
FULL: Final = os.environ.get("LANCE_DUCK_PROFILE") == "full"
NAMES: Final = ("t", "u", "s.v")
"""Tables with one row, the number of the last group."""
JOINS: Final = (
    "SELECT t.n, u.n, v.n FROM t, u, s.v",
    "SELECT t.n, u.n, v.n FROM lance.s.v, lance.u, lance.main.t",
    "SELECT (SELECT n FROM t), (SELECT n FROM u), (SELECT max(n) FROM s.v)",
    "SELECT list(n)[1], list(n)[2], list(n)[3] FROM (FROM t UNION ALL FROM u UNION ALL FROM s.v)",
    "WITH x AS (FROM t), y AS (FROM u) SELECT x.n, y.n, v.n FROM x JOIN y ON true JOIN s.v ON true",
    "FROM all_three",
    "FROM three()",
    "FROM all_three AS a WHERE EXISTS (FROM t WHERE t.n = a.t)",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with ld.connect(tmp_path / "folder") as con:
        con.execute("CREATE SCHEMA s")
        for name in NAMES:
            con.execute(f"CREATE TABLE {name} AS SELECT 0 AS n")
        con.execute("CREATE VIEW all_three AS SELECT t.n AS t, u.n AS u, v.n AS v FROM t, u, s.v")
        con.execute("CREATE MACRO three() AS TABLE SELECT t.n AS t, u.n AS u, v.n AS v FROM t, u, s.v")
    return tmp_path / "folder"


def commit_group(con: ld.Connection) -> None:
    """Add 1 to all three tables, in one group."""
    con.execute("BEGIN; UPDATE t SET n = n + 1; UPDATE u SET n = n + 1; UPDATE s.v SET n = n + 1; COMMIT")


@pytest.mark.parametrize("has_log", [False, True])
def test_a_transaction_reads_one_state(folder: Path, connect: Connect, has_log: bool) -> None:
    con, cursor, other = connect(folder), connect(folder), connect(folder)
    if has_log:
        commit_group(other)
    for number, first in enumerate(NAMES):
        state = number + has_log
        con.execute("BEGIN")
        assert rows(con, f"FROM {first}") == [(state,)]
        commit_group(other)
        ld.dataset(folder / "u.lance").insert({"n": pa.array([100], pa.int32())})
        ld.dataset(folder / "u.lance").delete("n = 100")
        for name in NAMES:
            assert rows(con, f"FROM {name}") == [(state,)]
        for join in JOINS:
            assert rows(con, join) == [(state, state, state)]
            assert rows(cursor, join) == [(state + 1, state + 1, state + 1)]
        con.execute("COMMIT")


def test_a_transaction_with_changes_reads_one_state(folder: Path, connect: Connect) -> None:
    con, other = connect(folder), connect(folder)
    con.execute("BEGIN; INSERT INTO t VALUES (50)")
    commit_group(other)
    assert rows(con, "FROM t") == [(0,), (50,)]
    assert rows(con, "SELECT u.n, v.n FROM u, s.v") == [(0, 0)]
    con.execute("INSERT INTO u SELECT n + 1 FROM s.v; COMMIT")
    assert [rows(con, f"FROM {name}") for name in NAMES] == [[(1,), (50,)], [(1,), (1,)], [(1,)]]


@contextmanager
def group_at_lookup(con: ld.Connection, number: int) -> Iterator[list[int]]:
    """Commit a group when a table is looked up for this time. Yields the numbers of all lookups."""
    look_up, seen = TableHandle._look_up, [0]

    def counted(handle: TableHandle) -> ld.LanceDataset:
        seen[0] += 1
        if seen[0] == number:
            commit_group(con)
        return look_up(handle)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TableHandle, "_look_up", counted)
        yield seen


@pytest.mark.parametrize(
    ("join", "has_log"), [*((join, True) for join in JOINS), (JOINS[0], False), (JOINS[-1], False)]
)
def test_a_statement_reads_all_tables_before_or_after_a_group(
    folder: Path, connect: Connect, join: str, has_log: bool
) -> None:
    con, other, lookups, committed = connect(folder), connect(folder), 1, 0
    if has_log:
        commit_group(other)
        committed = 1
    while lookups < 100:
        with group_at_lookup(other, lookups) as seen:
            ((t, u, v),) = rows(con, join)
        assert t == u == v
        if seen[0] < lookups:
            break
        committed += 1
        assert t in (committed - 1, committed)
        assert rows(con, join) == [(committed, committed, committed)]
        lookups += 1
    assert lookups > 3


def read_at(at: int, read: Callable[[], Any]) -> Plan:
    """Read before step `at`."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if now == at:
            read()
        return do()

    return plan


@pytest.mark.filterwarnings("ignore:.*is not finished; the state before it is read")
def test_a_read_only_folder_has_the_rows_before_or_after_a_group_at_any_step(folder: Path, connect: Connect) -> None:
    con, reader = connect(folder), connect()
    reader.execute(f"ATTACH '{folder}' AS r (TYPE lance, READ_ONLY)")
    found: list[Any] = []

    def read() -> None:
        found.extend(rows(reader, "SELECT t.n, u.n, v.n FROM r.t, r.u, r.s.v"))

    steps, number, threads = 1, 0, ThreadPoolExecutor(1)
    while number < steps:
        con.execute("BEGIN; UPDATE t SET n = n + 1; UPDATE u SET n = n + 1; UPDATE s.v SET n = n + 1")
        with Faults(read_at(number, lambda: threads.submit(read).result())) as faults:
            con.execute("COMMIT")
        assert found[-1] in [(number, number, number), (number + 1, number + 1, number + 1)]
        steps, number = len(faults.steps), number + 1
    assert len(found) == steps
    assert len({state - number for number, (state, _, _) in enumerate(found)}) == 2


SWAPS: Final = """
import sys
import lance_duck as ld
with ld.connect(sys.argv[1]) as con:
    for _ in range(int(sys.argv[2])):
        for schema in ("main", "s"):
            con.execute(f"BEGIN; CREATE TABLE {schema}.t__tmp AS SELECT n + 1 AS n FROM {schema}.t")
            con.execute(f"UPDATE u SET n = n + 1; ALTER TABLE {schema}.t RENAME TO t__old")
            con.execute(f"ALTER TABLE {schema}.t__tmp RENAME TO t; DROP TABLE {schema}.t__old; COMMIT")
"""
"""The swaps of dbt: a new table takes the name of another one, which is dropped. `u` counts the swaps."""


def test_a_reader_never_misses_a_swapped_table(folder: Path, connect: Connect) -> None:
    reader, swaps = connect(folder), 60 if FULL else 6
    reader.execute("CREATE TABLE s.t AS SELECT 0 AS n")
    states, command = [], [sys.executable, "-c", SWAPS, str(folder), str(swaps)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as writer:
        while writer.poll() is None:
            states += rows(reader, "SELECT m.n, t.n, u.n FROM main.t AS m, s.t, u")
            (name,) = [name for (name,) in rows(reader, "SHOW TABLES FROM lance.main") if name.startswith("t")]
            assert name == "t"
        assert writer.returncode == 0, writer.stderr.read() if writer.stderr else ""
    assert [state for state in states if state[0] + state[1] != state[2]] == []
    assert states == sorted(states)
    assert rows(reader, "SELECT m.n, t.n, u.n FROM main.t AS m, s.t, u") == [(swaps, swaps, 2 * swaps)]
    assert rows(reader, "SHOW TABLES FROM lance.s") == [("t",), ("v",)]


@pytest.mark.parametrize("schema", ["", "s."])
def test_a_transaction_never_reads_a_table_that_replaced_another(folder: Path, connect: Connect, schema: str) -> None:
    if schema and duckdb.__version__ < "2":
        pytest.skip("DuckDB 1 looks up names of a schema at each statement")
    con, other = connect(folder), connect(folder)
    con.execute("CREATE TABLE s.t AS SELECT 0 AS n; BEGIN")
    assert rows(con, "FROM u") == [(0,)]
    other.execute(f"BEGIN; CREATE TABLE {schema}t__tmp AS SELECT 1 AS n; UPDATE u SET n = 1; DROP TABLE {schema}t")
    other.execute(f"ALTER TABLE {schema}t__tmp RENAME TO t; COMMIT")
    with pytest.raises((NotFoundError, RetryableError), match=r"replaced|not found|dropped"):
        con.execute(f"FROM {schema}t")
    con.execute("ROLLBACK")
    assert rows(con, f"SELECT t.n, u.n FROM {schema}t AS t, u") == [(1, 1)]
