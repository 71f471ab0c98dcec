"""Cursors, parsed statements, appends and `executemany`; `statements/lance/prepared.sql` has the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pandas as pd
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, LanceDuckError, UnsupportedError


def version(folder: Path) -> int:
    return int(lance.dataset(folder / "trips.lance").version)


def test_each_cursor_has_separate_prepared_statements(con: ld.Connection) -> None:
    con.execute("PREPARE x AS TRUNCATE trips")
    with pytest.raises(duckdb.Error, match="does not exist"):
        con.cursor().execute("EXECUTE x")


def test_parsed_statements_change_tables(con: ld.Connection, folder: Path) -> None:
    text = "INSERT INTO trips VALUES (9, 'n'); -- and\nUPDATE trips SET city = ? WHERE id = 9"
    insert, update = con.extract_statements(text)
    con.execute(insert)
    con.execute(update, ["m"])
    prepare, execute = con.extract_statements("PREPARE x AS DELETE FROM trips WHERE id < $1; EXECUTE x(9)")
    con.execute(prepare)
    con.execute(execute)
    assert con.execute("FROM trips").fetchall() == [(9, "m")]
    (insert,) = con.extract_statements("INSERT INTO trips VALUES (?, ?)")
    con.executemany(insert, [[1, "a"], [2, "b"]])
    assert con.sql(con.extract_statements("FROM trips ORDER BY id")[0]).fetchall() == [(1, "a"), (2, "b"), (9, "m")]
    assert version(folder) == 7


def test_parsed_statements_read_paths_and_versions(con: ld.Connection, folder: Path) -> None:
    path = f"SELECT count(*) FROM '{folder}/trips.lance' WHERE id > $low; SELECT 'more'"
    assert con.execute(con.extract_statements(path)[0], {"low": 3}).fetchall() == [(3,)]
    version_1 = con.extract_statements("SELECT 'ä;'; SELECT count(*) FROM trips AT (VERSION => 1); SELECT 2")[1]
    assert con.execute(version_1).fetchall() == con.sql(version_1).fetchall() == [(5,)]
    own = con.extract_statements("SELECT 1 + ?")[0]
    assert con.execute(own, [2]).fetchall() == [(3,)]
    assert con.rowcount == -1


def test_parameters_apply_to_the_last_statement(con: ld.Connection) -> None:
    con.execute("DELETE FROM trips WHERE id > 0; INSERT INTO trips VALUES ($id, $city)", {"id": 9, "city": "n"})
    assert con.execute("FROM trips ORDER BY id").fetchall() == [(0, "a"), (9, "n")]


# Several rows in one call.


@pytest.mark.parametrize(
    ("sql", "sets", "count"),
    [
        ("UPDATE trips SET city = ? WHERE id = ?", [["y", 1], ["z", 2]], 7),
        ("DELETE FROM trips WHERE id = ?", [[1], [2]], 5),
        ("DELETE FROM trips WHERE id = $i RETURNING id", [{"i": 1}, {"i": 2}], 5),
        ("INSERT INTO trips SELECT max(id) + ?, 'n' FROM trips", [[1], [1]], 9),
        (
            "MERGE INTO trips USING (SELECT ?::BIGINT AS id) s USING (id) WHEN MATCHED THEN DELETE "
            "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            [[1], [1], [70]],
            8,
        ),
    ],
)
def test_executemany_commits_one_version(
    con: ld.Connection, folder: Path, sql: str, sets: list[Any], count: int
) -> None:
    con.executemany(sql, sets)
    assert version(folder) == 4
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(count,)]


@pytest.mark.parametrize(
    ("sql", "sets"),
    [
        ("UPDATE trips SET id = ?::INT", [[5], ["x"]]),
        ("INSERT INTO trips VALUES (?, ?)", [[5, "a"], ["x", "b"]]),
        ("INSERT INTO trips SELECT ?::INT, ?", [[5, "a"], ["x", "b"]]),
        ("DELETE FROM trips WHERE id = ?::INT", [[1], ["x"]]),
        ("DELETE FROM trips WHERE id = ?", [[1], [2, 3]]),
        ("DELETE FROM trips WHERE id = ?", []),
    ],
)
def test_an_error_during_executemany_leaves_nothing(
    con: ld.Connection, folder: Path, sql: str, sets: list[Any]
) -> None:
    before = sorted(map(str, folder.rglob("*")))
    with pytest.raises((duckdb.Error, LanceDuckError)):
        con.executemany(sql, sets)
    assert sorted(map(str, folder.rglob("*"))) == before
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_a_frame_is_appended_as_one_version(con: ld.Connection, folder: Path) -> None:
    con.append("trips", pd.DataFrame({"id": [10, 11], "city": ["p", None]}))
    con.append('lance."trips"', pd.DataFrame({"city": ["q"], "id": [12]}), by_name=True)
    assert con.execute("FROM trips WHERE id > 7 ORDER BY id").fetchall() == [(10, "p"), (11, None), (12, "q")]
    assert version(folder) == 5
    with pytest.raises((duckdb.Error, LanceDuckError)):
        con.append("trips", pd.DataFrame({"id": [1]}))
    with pytest.raises(duckdb.Error):
        con.append("nobody", pd.DataFrame({"id": [1]}))
    assert version(folder) == 5
    con.begin()
    con.append("trips", pd.DataFrame({"id": [13], "city": ["r"]}))
    assert con.execute("SELECT max(id) FROM trips").fetchall() == [(13,)]
    con.rollback()
    assert version(folder) == 5
    con.execute("CREATE TABLE own(a INT)")
    con.append("own", pd.DataFrame({"a": [1]}))
    assert con.execute("FROM own").fetchall() == [(1,)]


def test_native_duckdb_methods_do_not_change_lance_tables(con: ld.Connection, folder: Path) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: con.table("trips").insert([1, "x"]),
        lambda: con.view("trips").insert([1, "x"]),
        lambda: con.table("trips").update({"city": duckdb.ConstantExpression("u")}),
        lambda: con.sql("SELECT 1").to_table("lance.trips"),
        lambda: con.sql("SELECT 1").create("lance.trips"),
    ]
    for call in calls:
        with pytest.raises((duckdb.Error, AlreadyExistsError)):
            call()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    assert version(folder) == 3


def test_appenders_reject_lance_tables(con: ld.Connection) -> None:
    for name in ("trips", "lance.trips", '"TRIPS"'):
        with pytest.raises(UnsupportedError, match=r"append.*executemany"):
            con.appender(name)
    with pytest.raises(UnsupportedError, match=r"append.*executemany"):
        con.query_appender("INSERT INTO trips FROM appended_data", {"id": "INT", "city": "VARCHAR"})


@pytest.mark.parametrize(
    ("statement", "values"),
    [("SELECT $1 + 1", "(41)"), ("SELECT ?, ?", "(1, 'x')"), ("SELECT $a", "(a := 3)"), ("SELECT [?]", "(1 + 1)")],
)
def test_execute_in_a_transaction_names_columns_like_duckdb(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, statement: str, values: str
) -> None:
    results = []
    for each in (con, plain):
        each.execute("BEGIN").execute(f"PREPARE p AS {statement}").execute(f"EXECUTE p{values}")
        results.append(([column[0] for column in each.description], each.fetchall()))
    assert results[0] == results[1]


@pytest.mark.parametrize("target", ["'{path}'", "trips", "again", "lance.again"])
@pytest.mark.parametrize("source", ["'{path}'", '"TRIPS"', "again", "lance.again"])
def test_executemany_rows_see_earlier_rows_through_every_table_name(
    folder: Path, connect: Callable[..., ld.Connection], target: str, source: str
) -> None:
    path = str(folder / "trips.lance")
    con = connect({"trips": path, "again": path})
    into, read = target.format(path=path), source.format(path=path)
    con.executemany(f"INSERT INTO {into} (id) SELECT count(*) + $1 FROM {read}", [[100], [200]])
    assert con.execute("SELECT id FROM trips WHERE id > 99 ORDER BY ALL").fetchall() == [(107,), (208,)]


def test_executemany_counts_the_rows_of_all_sets(con: ld.Connection) -> None:
    con.executemany("INSERT INTO trips VALUES (?, ?)", [[70, "a"], [71, "b"], [72, "b"]])
    assert (con.rowcount, con.fetchall()) == (3, [(1,)])
    con.executemany("UPDATE trips SET id = id WHERE city = ? AND id >= 70", [["a"], ["b"], ["c"]])
    assert (con.rowcount, con.fetchall()) == (3, [(0,)])
    con.execute("BEGIN")
    con.executemany("DELETE FROM trips WHERE id >= 70 AND city = ?", [["b"], ["a"]])
    assert (con.rowcount, con.fetchall()) == (3, [(1,)])
    con.execute("ROLLBACK")
