"""Commits that rename and drop tables, and readers that run at the same time."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lance_duck as ld
from lance_duck.errors import RetryableError

Connect = Callable[..., ld.Connection]
SWAP = (
    "BEGIN; CREATE TABLE t__tmp AS SELECT {n} AS g, i FROM range(3) r(i); ALTER TABLE t RENAME TO t__old;"
    "ALTER TABLE t__tmp RENAME TO t; DROP TABLE t__old; UPDATE other SET g = {n}; COMMIT"
)
"""Replaces a table, as dbt does."""
WRITER = f"""
import sys
import lance_duck as ld

with ld.connect(sys.argv[1]) as con:
    for n in range(1, 9):
        con.execute({SWAP!r}.format(n=n))
"""


def rows(con: Any, sql: str) -> list[Any]:
    return sorted(con.execute(sql).fetchall())


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    con = connect(tmp_path)
    con.execute("BEGIN; " + "; ".join(f"CREATE TABLE {t} AS SELECT 1 AS g, '{t}' AS name" for t in "abc") + "; COMMIT")
    return con


CHANGED = "UPDATE a SET g = 2; UPDATE b SET g = 2; UPDATE c SET g = 2; "


@pytest.mark.parametrize(
    "sql",
    [
        f"{CHANGED}ALTER TABLE b RENAME TO t; ALTER TABLE c RENAME TO b; ALTER TABLE t RENAME TO c",
        f"{CHANGED}DROP TABLE b; CREATE TABLE b AS FROM c",
        f"{CHANGED}DROP TABLE b; ALTER TABLE c RENAME TO b",
        "DROP TABLE b; CREATE TABLE b AS FROM c",
        "UPDATE b SET g = 2; COMMIT; BEGIN; DROP TABLE b; CREATE TABLE b AS FROM c",
        "DROP TABLE b; CREATE TABLE b AS FROM c; COMMIT; BEGIN; UPDATE b SET g = 2; UPDATE c SET g = 2",
    ],
)
def test_a_transaction_does_not_read_a_table_that_got_another_name_meanwhile(
    con: ld.Connection, tmp_path: Path, connect: Connect, sql: str
) -> None:
    other = connect(tmp_path)
    con.execute("BEGIN")
    assert rows(con, "FROM a") == [(1, "a")]
    other.execute(f"BEGIN; {sql}; COMMIT")
    with pytest.raises(RetryableError, match="renamed or dropped tables after the transaction began"):
        con.execute("FROM b")
    con.execute("ROLLBACK")
    for (table,) in rows(con, "SHOW TABLES"):
        assert rows(con, f"FROM {table}") == rows(other, f"FROM {table}")


def test_a_transaction_reads_tables_that_later_commits_do_not_rename(
    con: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    con.execute("BEGIN")
    assert rows(con, "FROM a") == [(1, "a")]
    connect(tmp_path).execute(f"BEGIN; {CHANGED}ALTER TABLE b RENAME TO t; COMMIT")
    assert rows(con, "FROM c") == [(1, "c")]
    con.execute("COMMIT")
    assert rows(con, "FROM c") == [(2, "c")]


def test_a_transaction_that_began_before_the_first_commit_of_several_tables(tmp_path: Path, connect: Connect) -> None:
    con, other = connect(tmp_path), connect(tmp_path)
    for table in "abc":
        con.execute(f"CREATE TABLE {table} AS SELECT 1 AS g, '{table}' AS name")
    con.execute("BEGIN")
    assert rows(con, "FROM a") == [(1, "a")]
    other.execute(f"BEGIN; {CHANGED}DROP TABLE b; ALTER TABLE c RENAME TO b; COMMIT")
    with pytest.raises(RetryableError, match="renamed or dropped tables"):
        con.execute("FROM b")


@contextmanager
def swaps_in_a_thread(con: ld.Connection) -> Iterator[Callable[[], bool]]:
    """Replace the table in a thread during the block. Yields a function that returns whether it still does."""

    def swap() -> None:
        for n in range(1, 9):
            con.execute(SWAP.format(n=n))

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield thread.is_alive
    finally:
        thread.join()


@contextmanager
def swaps_in_a_process(folder: Path) -> Iterator[Callable[[], bool]]:
    """Replace the table in a process during the block. Yields a function that returns whether it still does."""
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)])
    try:
        yield lambda: process.poll() is None
    finally:
        assert process.wait() == 0


@pytest.mark.filterwarnings("ignore:.*not finished; the state before it is read")
@pytest.mark.parametrize("writer", ["thread", "process"])
@pytest.mark.parametrize("read_only", [False, True])
def test_readers_see_the_old_or_the_new_table(
    tmp_path: Path, connect: Connect, writer: str, *, read_only: bool
) -> None:
    first = connect(tmp_path)
    first.execute("CREATE TABLE t AS SELECT 0 AS g, i FROM range(3) r(i); CREATE TABLE other AS SELECT 0 AS g")
    first.execute(SWAP.format(n=0))
    con = connect(tmp_path, read_only=read_only)
    seen = [0]
    with swaps_in_a_process(tmp_path) if writer == "process" else swaps_in_a_thread(first) as runs:
        while runs():
            ((number, count),) = con.execute("SELECT min(g), count(*) FROM t").fetchall()
            assert count == 3
            ((least, greatest, other),) = con.execute(
                "WITH x AS (FROM t) SELECT min(x.g), max(x.g), min(other.g) FROM x, other"
            ).fetchall()
            assert least == greatest == other
            seen += [number, least]
    assert seen == sorted(seen)
    assert rows(con, "SELECT DISTINCT g FROM t") == [(8,)]
