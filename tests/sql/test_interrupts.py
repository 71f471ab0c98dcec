"""Interrupted changes leave nothing behind, and the interrupt keeps its class."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld

pytestmark = pytest.mark.usefixtures("_sigint")

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string())])
BATCHES, ROWS_OF_A_BATCH = 12, 20_000
CHANGES = [
    "INSERT INTO trips FROM source",
    "INSERT INTO trips FROM source RETURNING id",
    "INSERT INTO trips FROM source ON CONFLICT (id) DO NOTHING",
    "INSERT INTO trips VALUES (1, (SELECT max(city) FROM source))",
    "UPDATE trips SET city = source.city FROM source WHERE trips.id = source.id",
    "DELETE FROM trips USING source WHERE trips.id = source.id",
    "MERGE INTO trips USING source ON trips.id = source.id WHEN MATCHED THEN DELETE",
    "CREATE TABLE lance.made AS FROM source",
    "COPY (FROM source) TO '{folder}/made.lance'",
]


def source_that(act: Callable[[], None]) -> pa.RecordBatchReader:
    """A finite source of rows that does something before its fourth batch."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(BATCHES):
            if number == 3:
                act()
            columns = [pa.array([number] * ROWS_OF_A_BATCH), pa.array(["x"] * ROWS_OF_A_BATCH)]
            yield pa.record_batch(columns, schema=SCHEMA)

    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fail() -> None:
    raise ValueError("the source broke")


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("method", ["sql", "execute"])
@pytest.mark.parametrize("sql", CHANGES)
def test_ctrl_c_raises_keyboard_interrupt_and_leaves_nothing(
    con: ld.Connection, folder: Path, sql: str, method: str
) -> None:
    before = files_in(folder)
    source = source_that(press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        getattr(con, method)(sql.format(folder=folder))
    del source
    assert files_in(folder) == before
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


@pytest.mark.parametrize("sql", CHANGES)
def test_a_connection_interrupt_raises_the_duckdb_error(con: ld.Connection, folder: Path, sql: str) -> None:
    before = files_in(folder)
    source = source_that(con.native.interrupt)
    with pytest.raises(duckdb.InterruptException):
        con.execute(sql.format(folder=folder))
    del source
    assert files_in(folder) == before
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


@pytest.mark.parametrize("sql", CHANGES)
def test_an_error_in_the_source_raises_the_duckdb_error(con: ld.Connection, folder: Path, sql: str) -> None:
    before = files_in(folder)
    source = source_that(fail)
    with pytest.raises(duckdb.InvalidInputException, match="the source broke"):
        con.execute(sql.format(folder=folder))
    del source
    assert files_in(folder) == before
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_a_late_value_error_raises_the_duckdb_error(con: ld.Connection) -> None:
    late = "SELECT id, error('bad value') FROM range(1_000_000) AS r(id) WHERE id = 900_000"
    with pytest.raises(duckdb.InvalidInputException, match="bad value"):
        con.execute(f"INSERT INTO trips {late}")


def test_a_late_corrupt_error_raises_the_lance_duck_error(con: ld.Connection, folder: Path) -> None:
    ld.write_dataset(pa.table({"id": range(10), "city": ["x"] * 10}), folder / "damaged.lance", max_rows_per_file=5)
    last = sorted((folder / "damaged.lance" / "data").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:10])
    with pytest.raises(ld.CorruptError):
        con.execute("INSERT INTO trips FROM damaged")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_a_transaction_interrupted_by_ctrl_c_commits_nothing(con: ld.Connection, folder: Path) -> None:
    con.execute("BEGIN")
    con.execute("INSERT INTO trips VALUES (90, 'y')")
    source = source_that(press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        con.execute("INSERT INTO trips FROM source")
    del source
    with pytest.raises((ld.InvalidInputError, duckdb.Error)):
        con.execute("COMMIT")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    assert ld.dataset(folder / "trips.lance").version == 3


def test_ctrl_c_in_a_scalar_function_raises_keyboard_interrupt(
    con: ld.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> pa.Array:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("lance_duck.duck.tables.text_functions.highlight", stop)
        for sql in ("SELECT highlight(city, 'oslo') FROM trips", "SELECT highlight('Oslo', 'oslo')"):
            with pytest.raises(KeyboardInterrupt):
                con.execute(sql).fetchall()
    assert con.execute("SELECT highlight('Oslo', 'oslo')").fetchall() == [("<b>Oslo</b>",)]
