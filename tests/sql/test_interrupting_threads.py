"""`interrupt()` of another thread stops a statement in each of its phases, and never leaves half a change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.group_support import Pair

import lance_duck as ld
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.snapshot import publish

PHASES = {
    "the lookup of a key": ("lance_duck.duck.run.prefetch_rows._few_rows", "SELECT city FROM trips WHERE id = 3"),
    "a search": (
        "lance_duck.duck.tables.matches.MatchingRows.rows_found",
        "FROM lance_fts('trips', 'city', 'a', k := 3)",
    ),
    "the end of an UPDATE": (
        "lance_duck.duck.changes.session.edit_rows",
        "UPDATE trips SET city = 'q' WHERE id = 3",
    ),
    "the end of an INSERT": ("lance_duck.duck.changes.session.commit_added", "INSERT INTO trips VALUES (90, 'q')"),
    "the end of a CREATE TABLE": (
        "lance_duck.commit.creation.publish",
        "CREATE TABLE lance.made AS FROM trips",
    ),
    **{
        f"the commit of {sql}": ("lance_duck.commit.committer.CommitAttempts.rebased", sql)
        for sql in (
            "DELETE FROM trips WHERE id = 3",
            "MERGE INTO trips USING dim ON trips.city = dim.city WHEN MATCHED THEN DELETE",
            "ALTER TABLE trips ADD COLUMN k INTEGER DEFAULT 3",
            "CREATE INDEX i ON trips (id) USING BTREE",
            "OPTIMIZE trips",
            "CALL lance_restore('trips', 1)",
        )
    },
}
if SPEAKS_SOURCE:
    PHASES["the binding of a table"] = (
        "lance_duck.duck.tables.table.DuckTable._refresh",
        "SELECT sum(id + r) FROM trips, range(10_000_000) t(r)",
    )
ROWS = "SELECT count(*), sum(id), max(city) FROM trips"


def from_another_thread(call: Callable[[], object]) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


def act_before(monkeypatch: pytest.MonkeyPatch, target: str, act: Callable[[], object]) -> list[int]:
    """Act before the first call of a function. Returns a list that has an element afterwards."""
    function = resolve_name(target)
    done: list[int] = []

    def call(*args: Any, **options: Any) -> Any:
        if not done:
            done.append(1)
            act()
        return function(*args, **options)

    monkeypatch.setattr(target, call)
    return done


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("confined", [False, True])
def test_a_statement_stops_in_each_phase(
    folder: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch, phase: str, confined: bool
) -> None:
    con = connect(folder, confined=confined)
    before, rows = files_in(folder), con.execute(ROWS).fetchall()
    target, sql = PHASES[phase]
    done = act_before(monkeypatch, target, partial(from_another_thread, con.interrupt))
    with pytest.raises(duckdb.InterruptException, match="Interrupted"):
        con.execute(sql).fetchall()
    assert done
    assert files_in(folder) == before
    assert con.execute(ROWS).fetchall() == rows


def test_a_scan_in_duckdb_stops(con: ld.Connection) -> None:
    started = threading.Event()

    def batches() -> Iterator[pa.RecordBatch]:
        while True:
            started.set()
            yield pa.record_batch({"id": list(range(1000))})

    source = pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), batches())
    con.register("source", source)

    def interrupt() -> None:
        started.wait()
        con.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(duckdb.InterruptException):
        con.execute("SELECT sum(trips.id) FROM source JOIN trips USING (id)").fetchall()
    thread.join()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_a_commit_of_several_tables_stops_before_its_entry(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    con = pair.con
    sums = "SELECT (SELECT sum(n) FROM a), (SELECT sum(n) FROM b)"
    before = con.execute(sums).fetchall()
    con.execute("BEGIN; UPDATE a SET n = n + 1; UPDATE b SET n = n + 1")
    act_before(monkeypatch, "lance_duck.groups.write.relative_folder", partial(from_another_thread, con.interrupt))
    with pytest.raises(duckdb.InterruptException):
        con.execute("COMMIT")
    assert not con.in_transaction
    assert con.execute(sums).fetchall() == before


def test_a_change_that_is_being_published_is_finished(
    con: ld.Connection, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act_before(monkeypatch, f"{publish.__name__}._publish", partial(from_another_thread, con.interrupt))
    con.execute("UPDATE trips SET city = 'q' WHERE id = 3")
    assert ld.dataset(folder / "trips.lance").version == 4
    assert con.execute("SELECT city FROM trips WHERE id = 3").fetchall() == [("q",)]


def test_an_interrupt_between_statements_has_no_effect(con: ld.Connection) -> None:
    from_another_thread(con.interrupt)
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_an_interrupted_statement_ends_its_transaction(con: ld.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1")
    act_before(monkeypatch, "lance_duck.duck.changes.session.write_edits", partial(from_another_thread, con.interrupt))
    with pytest.raises(duckdb.InterruptException):
        con.execute("UPDATE trips SET city = 'q' WHERE id = 3")
    with pytest.raises((ld.InvalidInputError, duckdb.Error)):
        con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_an_interrupt_stops_only_the_statement_of_its_cursor(
    con: ld.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with con.cursor() as other:
        act_before(
            monkeypatch, "lance_duck.duck.changes.session.edit_rows", partial(from_another_thread, other.interrupt)
        )
        con.execute("UPDATE trips SET city = 'q' WHERE id = 3")
    assert con.execute("SELECT city FROM trips WHERE id = 3").fetchall() == [("q",)]
