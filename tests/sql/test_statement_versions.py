"""A statement reads one version of each table under all names and references, while others write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from itertools import pairwise
from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables import statement_versions
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

Counts = tuple[int, ...]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset({"id": [1, 2, 3]}, uri)
    return uri


@pytest.fixture
def con(tmp_path: Path, uri: str, connect: Callable[..., ld.Connection]) -> ld.Connection:
    con = connect(tmp_path)
    con.execute("CREATE VIEW seen AS FROM t; CREATE MACRO called() AS TABLE FROM t")
    return con


@pytest.fixture
def busy(uri: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Add a row just before each lookup of the newest version; return the versions seen."""
    looked: list[int] = []
    look_up = TableHandle._look_up

    def looks(handle: TableHandle) -> LanceDataset:
        ld.write_dataset({"id": [100]}, uri, mode="append")
        dataset = look_up(handle)
        looked.append(dataset.version)
        return dataset

    monkeypatch.setattr(TableHandle, "_look_up", looks)
    return looked


NAMES = ["t", "T", "lance.t", "'{}'", "lance_scan('t')", "lance_scan('{}')", "(FROM t)", "seen", "called()"]


@pytest.mark.parametrize(("one", "other"), list(pairwise([*NAMES, "t"])))
def test_references_to_one_table_read_one_version(
    con: ld.Connection, uri: str, busy: list[int], one: str, other: str
) -> None:
    sql = f"SELECT (SELECT sum(id) FROM {one}), (SELECT sum(id) FROM {other}), (SELECT sum(id) FROM t)".format(uri, uri)
    before = con.execute("SELECT sum(id) FROM t").fetchall()[0][0]
    counts: Counts = con.execute(sql).fetchall()[0]
    assert counts[0] > before
    assert len(set(counts)) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*), count(b.id) FROM t a LEFT JOIN t b ON a.id = b.id",
        "WITH c AS (SELECT * FROM t) SELECT count(*), (SELECT count(*) FROM t) FROM c",
        "SELECT (SELECT count(*) FROM (FROM t UNION FROM t)), count(DISTINCT id) FROM t",
        "SELECT count(*), count(*) FILTER (WHERE EXISTS (FROM t b WHERE b.id = a.id)) FROM t a",
    ],
)
def test_statements_with_several_references_read_one_version(con: ld.Connection, busy: list[int], sql: str) -> None:
    rows = con.execute(sql).fetchall()[0]
    assert rows[0] == rows[1] > 3


def test_a_statement_looks_up_each_table_once(con: ld.Connection, busy: list[int]) -> None:
    con.execute("SELECT count(*) FROM t WHERE id = 3").fetchall()
    before = len(busy)
    con.execute("SELECT count(*) FROM t a JOIN t b USING (id) WHERE a.id IN (SELECT id FROM t)").fetchall()
    assert len(busy) == before + 1


@pytest.mark.parametrize("read", ["execute", "sql"])
def test_every_statement_reads_the_newest_version(con: ld.Connection, uri: str, read: str) -> None:
    for rows in (3, 4, 5):
        sql = "SELECT count(*), (SELECT count(*) FROM t) FROM t"
        assert getattr(con, read)(sql).fetchall() == [(rows, rows)]
        ld.write_dataset({"id": [9]}, uri, mode="append")
    relation = con.sql("SELECT count(*) FROM t, t AS u")
    ld.write_dataset({"id": [9]}, uri, mode="append")
    assert relation.fetchall() == [(49,)]


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("INSERT INTO n SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM lance.t)", 1),
        ("UPDATE n SET a = (SELECT count(*) FROM t), b = (SELECT count(*) FROM seen)", 1),
        ("MERGE INTO n USING (SELECT (SELECT count(*) FROM t) a, (SELECT count(*) FROM called()) b) s ON false "
         "WHEN NOT MATCHED THEN INSERT", 1),
        ("CREATE OR REPLACE TABLE lance.n AS SELECT (SELECT count(*) FROM t) a, (SELECT count(*) FROM '{uri}') b", 1),
        ("COPY (SELECT (SELECT count(*) FROM t) a, (SELECT count(*) FROM seen) b) TO '{n}'", 1),
    ],
)  # fmt: skip
def test_changes_read_other_tables_at_a_single_version(
    con: ld.Connection, uri: str, busy: list[int], sql: str, count: int
) -> None:
    con.execute("CREATE TABLE lance.n AS SELECT 1::BIGINT a, 2::BIGINT b")
    con.execute(sql.format(uri=uri, n=uri.replace("t.lance", "n.lance")))
    assert con.execute("SELECT count(*) FROM n WHERE a = b").fetchall() == [(count,)]


def test_nested_statements_see_earlier_writes(con: ld.Connection, uri: str) -> None:
    other = con.cursor()

    def added(number: int) -> int:
        other.execute(f"INSERT INTO t VALUES ({number})")
        return int(other.execute("SELECT count(*) FROM t").fetchall()[0][0])

    con.create_function("added", added, ["BIGINT"], "BIGINT", side_effects=True)
    rows = con.execute("SELECT id, added(id) FROM t ORDER BY id").fetchall()
    assert sorted(count for _, count in rows) == [4, 5, 6]


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="each mention is an object of its own")
def test_cursors_that_bind_newer_versions_change_nothing(
    con: ld.Connection, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reads the references one after the other, in other threads."""
    from lance_duck.duck.tables.table import DuckTable

    other = con.cursor()
    stream = DuckTable.stream

    def slow(table: DuckTable, *arguments: object) -> tuple[object, bool]:
        result = stream(table, *arguments)  # type: ignore[arg-type]
        if threading.get_ident() not in asking:
            asking.add(threading.get_ident())
            ld.write_dataset({"id": [7]}, uri, mode="append")
            other.execute("SELECT sum(id) FROM t WHERE id > 0").fetchall()
        return result

    asking: set[int] = set()
    con.execute("SET threads = 1")
    monkeypatch.setattr(DuckTable, "stream", slow)
    rows = con.execute("SELECT sum(a.id), (SELECT sum(id) FROM t) AS b FROM t a").fetchall()
    assert rows == [(6, 6)]


def test_threads_read_independent_versions(con: ld.Connection, uri: str) -> None:
    wrong: list[Counts] = []
    done = threading.Event()

    def reads(cursor: ld.Connection) -> None:
        while not done.is_set():
            counts = cursor.execute("SELECT sum(a.id), (SELECT sum(id) AS s FROM t) AS b FROM t a").fetchall()[0]
            if counts[0] != counts[1]:
                wrong.append(counts)

    threads = [threading.Thread(target=reads, args=(con.cursor(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(12):
        ld.write_dataset({"id": [number]}, uri, mode="append")
        con.execute("SELECT count(*) FROM t").fetchall()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_interrupt_leaves_no_pinned_version(con: ld.Connection, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C may arrive at any moment, even between planning and running a statement."""
    run, moments = Context.run, []

    class Stopped:
        def __init__(self, at: int) -> None:
            self.at, self.calls = at, 0
            self.context = Context()

        def run(self, call: Callable[..., object], *arguments: object) -> object:
            self.calls += 1
            result = run(self.context, call, *arguments)
            if self.calls == self.at:
                moments.append(self.at)
                raise KeyboardInterrupt
            return result

    for at in (1, 2):
        with monkeypatch.context() as patched:
            patched.setattr(statement_versions, "copy_context", lambda at=at: Stopped(at))
            with pytest.raises(KeyboardInterrupt):
                con.execute("SELECT sum(id) FROM t")
        ld.write_dataset({"id": [10]}, uri, mode="append")
        assert con.execute("SELECT sum(id) FROM t").fetchall() == [(6 + 10 * at,)]
    assert moments == [1, 2]
