"""PREPARE, EXECUTE and DEALLOCATE of statements about Lance tables; statements that DuckDB has parsed; appends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pandas as pd
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError


def version(folder: Path) -> int:
    return int(lance.dataset(folder / "trips.lance").version)


@pytest.mark.parametrize(
    ("prepared", "executed", "answer", "left"),
    [
        ("INSERT INTO trips VALUES ($1, $2)", "x(9, 'n' || 'n')", [(1,)], [(9, "nn")]),
        ("INSERT INTO trips VALUES (?, ?)", "x(9, NULL)", [(1,)], [(9, None)]),
        ("INSERT INTO trips (id) SELECT $1 + $1", "X(4.5)", [(1,)], [(9, None)]),
        (
            "UPDATE trips SET city = $c WHERE id > $i RETURNING *",
            "x(i := 6, c := 'it''s')",
            [(7, "it's")],
            [(7, "it's")],
        ),
        ("DELETE FROM lance.trips WHERE id <> -$1", "x(-7)", [(6,)], [(7, "z")]),
        ("TRUNCATE trips", "x", [(7,)], []),
        ("WITH q AS (SELECT $1 AS k) DELETE FROM trips USING q WHERE id > k", "x(5)", [(1,)], []),
        (
            "MERGE INTO trips USING (SELECT $1 AS id) s USING (id) WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)",
            "x(9)",
            [(1,)],
            [(9, None)],
        ),
    ],
)
def test_a_prepared_change_runs_with_its_values(
    con: ld.Connection, folder: Path, prepared: str, executed: str, answer: list[Any], left: list[Any]
) -> None:
    assert con.execute(f"PREPARE x AS {prepared}").fetchall() == []
    assert version(folder) == 3
    assert con.execute(f"EXECUTE {executed}").fetchall() == answer
    assert version(folder) == 4
    assert (
        con.execute(
            "FROM trips WHERE id > 6 AND (id > 7 OR city <> 'z' OR (SELECT count(*) FROM trips) = 1)"
        ).fetchall()
        == left
    )


def test_a_prepared_change_reads_the_newest_version_each_time(con: ld.Connection, folder: Path) -> None:
    con.execute(
        "PREPARE grow AS INSERT INTO trips SELECT count(*), $1 FROM trips; PREPARE read AS SELECT count(*) FROM trips"
    )
    con.execute("EXECUTE grow('a'); EXECUTE grow('b'); EXECUTE grow('a')")
    assert con.execute("EXECUTE read").fetchall() == [(10,)]
    assert con.execute("SELECT id FROM trips WHERE id > 7 ORDER BY id").fetchall() == [(8,), (9,)]
    lance.dataset(folder / "trips.lance").delete("id > 3")
    assert con.sql("EXECUTE read").fetchall() == [(4,)]
    con.execute("BEGIN; DELETE FROM trips WHERE id > 1")
    assert con.execute("EXECUTE read").fetchall() == [(2,)]
    con.execute("EXECUTE grow('x'); ROLLBACK")
    assert con.execute("EXECUTE read").fetchall() == [(4,)]


@pytest.mark.parametrize(
    ("executed", "error"),
    [
        ("x(1)", InvalidInputError),
        ("x(1, 'a', 2)", InvalidInputError),
        ("x(a := 1, b := 'a')", InvalidInputError),
        ("x", InvalidInputError),
        ("x(?, ?)", InvalidInputError),
        ("x(id, 'a')", duckdb.Error),
        ("x((SELECT max(id) FROM trips), 'a')", duckdb.Error),
        ("x('no number', 'a')", duckdb.Error),
        ("nobody(1, 'a')", duckdb.Error),
    ],
)
def test_values_that_do_not_fit_change_nothing(
    con: ld.Connection, folder: Path, executed: str, error: type[Exception]
) -> None:
    con.execute("PREPARE x AS INSERT INTO trips VALUES ($1, $2)")
    with pytest.raises(error):
        con.execute(f"EXECUTE {executed}")
    assert version(folder) == 3
    con.execute("EXECUTE x(9, 'n')")
    assert version(folder) == 4


def test_values_are_evaluated_once(con: ld.Connection) -> None:
    con.execute("PREPARE x AS UPDATE trips SET city = $1 || '|' || $1; EXECUTE x(random()::VARCHAR)")
    ((value,),) = con.execute("SELECT DISTINCT city FROM trips").fetchall()
    assert len(set(value.split("|"))) == 1


def test_a_prepared_change_is_let_go_of_and_replaced(con: ld.Connection, folder: Path) -> None:
    con.execute("PREPARE x AS DELETE FROM trips WHERE id = $1; DEALLOCATE x")
    with pytest.raises(duckdb.Error, match="does not exist"):
        con.execute("EXECUTE x(1)")
    con.execute("PREPARE x AS DELETE FROM trips WHERE id = $1; PREPARE x AS SELECT $1 + 1")
    assert con.execute("EXECUTE x(1)").fetchall() == [(2,)]
    con.execute("DEALLOCATE PREPARE x")
    with pytest.raises(duckdb.Error, match="does not exist"):
        con.execute("EXECUTE x(1)")
    with pytest.raises(duckdb.ParserException):
        con.execute("PREPARE x AS DELETE FROM trips WHERE")
    assert version(folder) == 3


def test_explain_of_execute_writes_nothing(con: ld.Connection, folder: Path) -> None:
    con.execute("PREPARE x AS DELETE FROM trips WHERE id = $1")
    plan = con.execute("EXPLAIN EXECUTE x(1)").fetchall()
    assert "Nothing was written" in str(plan)
    assert version(folder) == 3


def test_transactions_are_prepared(con: ld.Connection, folder: Path) -> None:
    con.execute("PREPARE b AS BEGIN; PREPARE c AS COMMIT; EXECUTE b; DELETE FROM trips WHERE id = 1; TRUNCATE trips")
    assert version(folder) == 3
    con.execute("EXECUTE c")
    assert version(folder) == 4


def test_cursors_have_prepared_statements_of_their_own(con: ld.Connection) -> None:
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


def test_parameters_belong_to_the_last_statement_of_a_text(con: ld.Connection) -> None:
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
def test_executemany_is_one_version(con: ld.Connection, folder: Path, sql: str, sets: list[Any], count: int) -> None:
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
def test_an_error_in_the_middle_of_executemany_leaves_nothing(
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


def test_what_belongs_to_duckdb_does_not_change_lance_tables(con: ld.Connection, folder: Path) -> None:
    frame = pd.DataFrame({"id": [10], "city": ["p"]})
    calls: list[Callable[[], Any]] = [
        lambda: con.sql("SELECT 20 AS id, 'r' AS city").insert_into("trips"),
        lambda: con.sql("SELECT 20 AS id, 'r' AS city").insert_into("lance.trips"),
        lambda: con.from_df(frame).insert_into("trips"),
        lambda: con.from_df(frame).query("f", "INSERT INTO trips FROM f"),
        lambda: con.table("trips").insert([1, "x"]),
        lambda: con.view("trips").insert([1, "x"]),
        lambda: con.table("trips").update({"city": duckdb.ConstantExpression("u")}),
        lambda: con.sql("SELECT 1").to_table("lance.trips"),
        lambda: con.sql("SELECT 1").create("lance.trips"),
    ]
    for call in calls:
        with pytest.raises(duckdb.Error):
            call()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    assert version(folder) == 3


def test_appenders_of_lance_tables_are_refused(con: ld.Connection) -> None:
    for name in ("trips", "lance.trips", '"TRIPS"'):
        with pytest.raises(UnsupportedError, match=r"append.*executemany"):
            con.appender(name)
    with pytest.raises(UnsupportedError, match=r"append.*executemany"):
        con.query_appender("INSERT INTO trips FROM appended_data", {"id": "INT", "city": "VARCHAR"})


@pytest.mark.parametrize("reads", ["FROM seen", "FROM over_seen", "FROM called()"])
def test_a_prepared_select_through_a_view_or_macro_reads_the_newest_version(con: ld.Connection, reads: str) -> None:
    con.execute("CREATE VIEW seen AS SELECT id FROM trips WHERE id > 1; CREATE VIEW over_seen AS FROM seen")
    con.execute("CREATE MACRO called() AS TABLE FROM seen")
    con.execute(f"PREPARE p AS SELECT count(*) {reads} WHERE id < ?")
    before = con.execute("EXECUTE p(1000)").fetchall()[0][0]
    con.execute("INSERT INTO trips (id) VALUES (77), (78)")
    assert con.execute("EXECUTE p(1000)").fetchall() == [(before + 2,)]
    con.execute("BEGIN; DELETE FROM trips WHERE id = 77")
    assert con.execute("EXECUTE p(1000)").fetchall() == [(before + 1,)]
    con.execute("ROLLBACK")
    assert con.execute("EXECUTE p(1000)").fetchall() == [(before + 2,)]


@pytest.mark.parametrize(
    "version", ["AT (VERSION => 1) AS r", "AS r AT (VERSION => 'second')", "AT (VERSION => (SELECT 1))"]
)
def test_changes_that_are_prepared_or_many_read_older_versions(con: ld.Connection, version: str) -> None:
    insert = f"INSERT INTO trips SELECT -count(*), 'old' FROM trips {version}"
    con.execute(f"PREPARE x AS {insert}; EXECUTE x; {insert}; SELECT 1")
    rows = 8 if "second" in version else 5
    assert con.execute("SELECT id FROM trips WHERE city = 'old'").fetchall() == [(-rows,), (-rows,)]


@pytest.mark.parametrize(
    ("statement", "values"),
    [("SELECT $1 + 1", "(41)"), ("SELECT ?, ?", "(1, 'x')"), ("SELECT $a", "(a := 3)"), ("SELECT [?]", "(1 + 1)")],
)
def test_execute_in_a_transaction_names_columns_as_duckdb_does(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, statement: str, values: str
) -> None:
    results = []
    for each in (con, plain):
        each.execute("BEGIN").execute(f"PREPARE p AS {statement}").execute(f"EXECUTE p{values}")
        results.append(([column[0] for column in each.description], each.fetchall()))
    assert results[0] == results[1]


def test_a_statement_that_was_prepared_reads_a_view_that_was_made_later_as_the_transaction_does(
    con: ld.Connection,
) -> None:
    con.execute("CREATE TABLE memory.later AS SELECT 7 AS id")
    con.execute("PREPARE p AS SELECT max(id) + $1 FROM later")
    con.execute("DROP TABLE memory.later").execute("CREATE VIEW memory.later AS FROM trips")
    con.execute("BEGIN").execute("INSERT INTO trips VALUES (40, 'new')")
    assert con.execute("EXECUTE p(2)").fetchall() == [(42,)]
    con.execute("ROLLBACK")


@pytest.mark.parametrize("target", ["'{path}'", "trips", "again", "lance.again"])
@pytest.mark.parametrize("source", ["'{path}'", '"TRIPS"', "again", "lance.again"])
def test_sets_of_parameters_see_the_rows_of_those_before_by_every_name_of_a_table(
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
