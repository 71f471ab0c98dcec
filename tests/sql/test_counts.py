"""The count of rows that a change gives is fetched from a connection as DuckDB's own count is."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import duckdb
import pytest

import lance_duck as ld

OURS, NATIVE = "INSERT INTO trips VALUES (10, 'new'), (11, 'new')", "INSERT INTO own VALUES (10), (11)"
FETCHES: dict[str, Callable[[Any], Any]] = {
    "all": lambda con: con.fetchall(),
    "one": lambda con: con.fetchone(),
    "many": lambda con: con.fetchmany(5),
    "none": lambda con: con.fetchmany(0),
    "names": lambda con: [column[0] for column in con.description],
    "types": lambda con: [str(column[1]) for column in con.description],
    "frame": lambda con: None if (frame := con.df()) is None else frame.to_dict("list"),
    "numpy": lambda con: None if (found := con.fetchnumpy()) is None else {name: list(a) for name, a in found.items()},
    "relation": lambda con: con.sql("SELECT 7").fetchall(),
    "refused": lambda con: con.fetchmany(-1),
}


@pytest.fixture
def own(con: ld.Connection) -> ld.Connection:
    con.execute("CREATE TABLE memory.own (i INTEGER)")
    return con


def fetched(con: Any, sql: str, fetches: tuple[str, ...]) -> list[Any]:
    con.execute(sql)
    results: list[Any] = []
    for fetch in fetches:
        try:
            results.append(FETCHES[fetch](con))
        except (duckdb.Error, TypeError) as error:
            results.append(type(error))
    return results


def test_the_count_of_a_change_is_fetched_as_in_duckdb(own: ld.Connection) -> None:
    ours, native = "DELETE FROM trips WHERE id < 0", "DELETE FROM own WHERE i < 0"
    for fetches in product(FETCHES, FETCHES, ("all", "names")):
        assert fetched(own, ours, fetches) == fetched(own, native, fetches), fetches
    assert fetched(own, OURS, ("one", "names")) == [(2,), ["Count"]]


def test_only_the_last_count_can_be_fetched(own: ld.Connection) -> None:
    assert own.execute(OURS).execute("DELETE FROM trips WHERE id > 9").fetchall() == [(2,)]
    assert own.execute(OURS).execute(NATIVE.replace(", (11)", "")).fetchall() == [(1,)]
    assert own.execute(OURS).execute("SELECT 5").fetchall() == [(5,)]
    assert own.execute(OURS).executemany("INSERT INTO own VALUES (?)", [[1], [2]]).fetchall() == [(1,)]
    assert own.executemany("INSERT INTO trips VALUES (?, ?)", [[1, "a"], [2, "b"]]).fetchall() == [(1,)]
    assert (
        own.execute(f"{OURS}; SELECT 5").fetchall() == own.execute(f"SELECT 5; {OURS}; SELECT 5").fetchall() == [(5,)]
    )
    assert own.execute(OURS).begin().fetchall() == []
    assert own.execute(OURS).rollback().fetchall() == []


@pytest.mark.parametrize("fetch", ["all", "frame"])
def test_a_change_replaces_unfetched_rows_of_an_earlier_query(own: ld.Connection, fetch: str) -> None:
    results = []
    for change in ("DELETE FROM trips WHERE id < 0", "DELETE FROM own WHERE i < 0"):
        own.execute("SELECT * FROM range(100000)").fetchone()
        results.append(fetched(own, change, (fetch, "all")))
    assert results[0] == results[1]


def test_a_count_is_fetched_through_the_native_connection(own: ld.Connection) -> None:
    own.execute(OURS)
    assert own.native.fetchall() == [(2,)]


def test_counts_cannot_be_fetched_from_a_closed_connection(own: ld.Connection) -> None:
    own.execute(OURS)
    own.close()
    with pytest.raises(duckdb.Error):
        own.fetchall()
