"""Older versions of a table in any place where a table can stand: AT, and the arguments of `lance_scan`."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError

Rows = Callable[..., list[tuple[Any, ...]]]
IDS = "SELECT list(id ORDER BY id) FROM"


@pytest.fixture
def moment() -> list[datetime]:
    return []


@pytest.fixture
def con(
    tmp_path: Path, connect: Callable[..., ld.Connection], moment: list[datetime], monkeypatch: pytest.MonkeyPatch
) -> ld.Connection:
    """`t` with versions 1 (1, 2), 2 (and 3; tag `two`) and 3 (without 1); branch `dev` has 9 in its version 3; `u`."""
    monkeypatch.chdir(tmp_path)
    t = ld.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance")
    t.insert(pa.table({"id": [3], "s": ["c"]}))
    t.tags.create("two", 2)
    time.sleep(0.02)
    moment.append(datetime.now(UTC))
    time.sleep(0.02)
    t.delete("id = 1")
    t.create_branch("dev", 2).insert(pa.table({"id": [9], "s": ["z"]}))
    ld.write_dataset(pa.table({"id": [5]}), tmp_path / "u.lance")
    return connect(tmp_path)


@pytest.mark.parametrize(
    ("table", "ids"),
    [
        ("t AT (VERSION => 1)", [1, 2]),
        ("t AT (VERSION => 1 + 1)", [1, 2, 3]),
        ("t AT (VERSION => 'two')", [1, 2, 3]),
        ("t AT (VERSION => 'dev')", [1, 2, 3, 9]),
        ("t AT (VERSION => 'dev:2')", [1, 2, 3]),
        ("t AT (VERSION => 'main')", [2, 3]),
        ("t AT (VERSION => 'main:1')", [1, 2]),
        ("lance.t AT (VERSION => 1)", [1, 2]),
        ("lance.main.t AS x AT (VERSION => 1)", [1, 2]),
        ("'t.lance' AT (VERSION => 'dev:3')", [1, 2, 3, 9]),
        ("lance_scan('t', version := 'dev:3')", [1, 2, 3, 9]),
        ("lance_scan('lance.t', branch := 'dev')", [1, 2, 3, 9]),
        ("lance_scan('t.lance', branch := 'dev', version := 2)", [1, 2, 3]),
        ("lance_scan('t', branch := 'main', tag := 'two')", [1, 2, 3]),
        ("lance_scan('t', branch := 'dev', \"asof\" := now() + INTERVAL 1 DAY)", [1, 2, 3, 9]),
    ],
)
def test_a_version_is_asked_for_by_number_tag_or_branch(con: ld.Connection, rows: Rows, table: str, ids: Any) -> None:
    assert rows(con, f"{IDS} {table}") == [(ids,)]


def test_a_version_is_asked_for_by_time(con: ld.Connection, rows: Rows, moment: list[datetime]) -> None:
    assert rows(con, f"{IDS} t AT (TIMESTAMP => '{moment[0].isoformat()}')") == [([1, 2, 3],)]
    assert rows(con, f"{IDS} t AT (TIMESTAMP => ?)", [moment[0]]) == [([1, 2, 3],)]


def test_parameters_stand_for_versions(con: ld.Connection, rows: Rows) -> None:
    assert rows(con, f"{IDS} t AT (VERSION => ?) WHERE id > ?", [1, 1]) == [([2],)]
    assert rows(con, f"{IDS} t AT (VERSION => $v)", {"v": "dev"}) == [([1, 2, 3, 9],)]
    con.execute("PREPARE p AS SELECT count(*) FROM t AT (VERSION => ?)")
    assert [rows(con, f"EXECUTE p({version})") for version in (1, 2)] == [[(2,)], [(3,)]]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM t EXCEPT SELECT id FROM t AT (VERSION => 1)", [(3,)]),
        ("FROM t AT (VERSION => 1) EXCEPT FROM t", [(1, "a")]),
        ("SELECT count(*) FROM t AT (VERSION => 1), t AT (VERSION => 2) AS x", [(6,)]),
        ("SELECT t.id FROM t JOIN t AS b AT (VERSION => 1) USING (id)", [(2,)]),
        ("WITH old AS (FROM t AT (VERSION => 1)) SELECT count(*) FROM old", [(2,)]),
        ("SELECT (SELECT max(id) FROM t AT (VERSION => 1)), max(id) FROM t", [(2, 3)]),
        ("SELECT id FROM u WHERE EXISTS (FROM t AT (VERSION => 1) AS o WHERE o.id < u.id)", [(5,)]),
        ("WITH t AS (SELECT 4 AS id) FROM t", [(4,)]),
    ],
)
def test_several_versions_stand_in_one_statement(con: ld.Connection, rows: Rows, sql: str, expected: Any) -> None:
    assert rows(con, sql) == expected


def test_views_and_tables_of_duckdb_are_made_of_a_version(con: ld.Connection, rows: Rows) -> None:
    con.execute("CREATE VIEW v AS SELECT * FROM t AT (VERSION => 1)")
    con.execute("CREATE TABLE n AS FROM t AT (VERSION => 2)")
    con.execute("DELETE FROM t")
    assert rows(con, "SELECT (SELECT count(*) FROM v), (SELECT count(*) FROM n)") == [(2, 3)]


@pytest.mark.parametrize("older", ["t AT (VERSION => 1)", "lance.t AT (VERSION => ?)", "'t.lance' AT (VERSION => 1)"])
@pytest.mark.parametrize("target", ["t", "lance.t", "'t.lance'"])
def test_a_table_is_changed_by_what_an_older_version_of_it_has(
    con: ld.Connection, rows: Rows, target: str, older: str
) -> None:
    parameters = [1] if "?" in older else None
    con.execute(f"INSERT INTO {target} SELECT id + 10, s FROM {older}", parameters)
    assert rows(con, f"{IDS} t") == [([2, 3, 11, 12],)]
    con.execute(f"UPDATE {target} AS n SET s = o.s || '!' FROM {older} AS o WHERE o.id = n.id", parameters)
    assert rows(con, "SELECT s FROM t WHERE id = 2") == [("b!",)]
    con.execute(f"DELETE FROM {target} WHERE id IN (SELECT id FROM {older})", parameters)
    assert rows(con, f"{IDS} t") == [([3, 11, 12],)]
    con.execute(f"MERGE INTO {target} AS n USING {older} AS o ON o.id = n.id WHEN NOT MATCHED THEN INSERT", parameters)
    assert rows(con, f"{IDS} t") == [([1, 2, 3, 11, 12],)]


def test_a_transaction_reads_older_versions_beside_its_own(con: ld.Connection, rows: Rows) -> None:
    con.begin()
    con.execute("INSERT INTO t VALUES (7, 'q')")
    assert rows(con, f"{IDS} t AT (VERSION => 1)") == [([1, 2],)]
    con.execute("INSERT INTO t SELECT id + 10, s FROM t AT (VERSION => 1)")
    assert rows(con, f"{IDS} lance.t") == [([2, 3, 7, 11, 12],)]
    con.rollback()
    assert rows(con, f"{IDS} t") == [([2, 3],)]


def test_a_path_that_is_a_text_among_others_stays_a_text(con: ld.Connection, rows: Rows) -> None:
    con.execute("INSERT INTO t SELECT 8, 't.lance' FROM 't.lance' WHERE 't.lance' IN ('x', 't.lance') AND id = 2")
    assert rows(con, "SELECT s FROM t WHERE id = 8") == [("t.lance",)]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("VERSION => 9", "no version 9: expected one of 1 to 3"),
        ("VERSION => 'dev:9'", "no version 9: expected one of 2 to 3"),
        (
            "VERSION => 'nope'",
            r"no version, tag or branch 'nope': expected a tag \(one of two\), a branch \(one of dev\)",
        ),
        ("VERSION => 'nope:1'", "no branch 'nope': expected one of dev"),
        ("VERSION => 'dev:two'", "tag 'two' is not on branch 'dev'"),
        ("TIMESTAMP => TIMESTAMP '2001-01-01'", "earlier than the first version"),
    ],
)
def test_an_unknown_version_is_refused_with_those_that_exist(con: ld.Connection, at: str, message: str) -> None:
    with pytest.raises(NotFoundError, match=message):
        con.execute(f"FROM t AT ({at})")


def test_the_versions_in_an_error_leave_out_those_cleaned_up(con: ld.Connection) -> None:
    con.execute("INSERT INTO t VALUES (4, 'd')")
    ld.dataset("t.lance").cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    with pytest.raises(NotFoundError, match=r"no version 1: expected one of 2, 4;"):
        con.execute("FROM t AT (VERSION => 1)")


def test_bad_times_and_several_choices_are_refused(con: ld.Connection) -> None:
    with pytest.raises(InvalidInputError, match="bad time"):
        con.execute("FROM t AT (TIMESTAMP => 'x')")
    with pytest.raises(InvalidInputError, match="one of version, tag and asof"):
        con.execute("FROM lance_scan('t', version := 1, tag := 'two')")
    with pytest.raises(duckdb.Error):
        con.execute("DELETE FROM t AT (VERSION => 1)")
    assert con.execute(f"{IDS} t").fetchall() == [([2, 3],)]


def test_branches_are_read_on_a_plain_connection(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, rows: Rows
) -> None:
    assert rows(plain, f"{IDS} lance_scan('t.lance', version := 'dev')") == [([1, 2, 3, 9],)]
    sql = "SELECT id FROM lance_vector_search('v.lance', 'vec', [1.0, 0.0]::FLOAT[], k := 1, branch := 'dev')"
    vectors = pa.table({"id": [1], "vec": pa.array([[0.0, 1.0]], pa.list_(pa.float32(), 2))})
    v = ld.write_dataset(vectors, "v.lance")
    v.create_branch("dev").insert(pa.table({"id": [2], "vec": pa.array([[1.0, 0.0]], pa.list_(pa.float32(), 2))}))
    assert rows(plain, sql) == [(2,)]
    assert rows(con, sql) == [(2,)]


@pytest.mark.parametrize("clause", ["AT (VERSION => {})", "AT (TIMESTAMP => {})"])
def test_no_version_at_all_is_refused_by_at(con: ld.Connection, clause: str) -> None:
    with pytest.raises(InvalidInputError, match=r"an empty (version|time)"):
        con.execute(f"FROM t {clause.format('NULL')}")
    with pytest.raises(InvalidInputError, match=r"an empty (version|time)"):
        con.execute(f"FROM t {clause.format('?')}", [None])


def test_parameters_say_the_version_of_at(con: ld.Connection, rows: Rows, moment: list[datetime]) -> None:
    assert rows(con, f"{IDS} t AT (VERSION => ?)", [1]) == [([1, 2],)]
    assert rows(con, f"{IDS} t AT (TIMESTAMP => ?)", [moment[0]]) == [([1, 2, 3],)]
    con.execute("PREPARE earlier AS SELECT id FROM t AT (VERSION => $1)")
    assert rows(con, "EXECUTE earlier('two')") == [(1,), (2,), (3,)]
    with pytest.raises(InvalidInputError, match=r"an empty (version|time)"):
        con.execute("EXECUTE earlier(NULL)")
    assert rows(con, f"{IDS} lance_scan('t', version := NULL)") == [([2, 3],)]


def test_the_time_of_a_version_is_that_version(con: ld.Connection, rows: Rows) -> None:
    times = [str(row[0]) for row in rows(con, "SELECT timestamp::VARCHAR FROM lance_versions('t')")]
    counts = [rows(con, f"SELECT count(*) FROM t AT (TIMESTAMP => '{time}')")[0][0] for time in times]
    assert counts == [row[0] for row in rows(con, "SELECT rows FROM lance_versions('t')")] == [2, 3, 2]


@pytest.mark.parametrize(
    ("at", "count"),
    [
        ("VERSION => (SELECT min(version) FROM lance_versions('t'))", 2),
        ("VERSION => (SELECT 1 + max(1))", 3),
        ("VERSION => (FROM (SELECT 'two'))", 3),
        ("TIMESTAMP => (SELECT max(timestamp) FROM lance_versions('t') WHERE version < 3)", 3),
    ],
)
def test_a_query_gives_the_version(con: ld.Connection, rows: Rows, at: str, count: int) -> None:
    sql = f"SELECT count(*) FROM t AT ({at})"
    assert rows(con, sql) == con.sql(sql).fetchall() == [(count,)]
    con.execute("BEGIN; DELETE FROM t WHERE id = 1")
    assert rows(con, sql) == [(count,)]
    con.execute("ROLLBACK")
    assert rows(con, f"INSERT INTO t SELECT * FROM t AT ({at})") == [(count,)]


@pytest.mark.parametrize("at", ["VERSION => d.id", "VERSION => id", "TIMESTAMP => lance.u.id"])
def test_a_column_is_no_version(con: ld.Connection, at: str) -> None:
    with pytest.raises(InvalidInputError, match="AT takes one version for all rows"):
        con.execute(f"SELECT * FROM u AS d, t AT ({at})")


def test_a_query_with_parameters_is_no_version(con: ld.Connection) -> None:
    with pytest.raises(InvalidInputError, match="query without parameters"):
        con.execute("FROM t AT (VERSION => (SELECT ?))", [1])


@pytest.mark.parametrize("name", ["lance.t", "lance.main.t", "ns.t", "NS.main.T"])
def test_columns_of_an_older_version_are_qualified_as_the_table_is(
    con: ld.Connection, tmp_path: Path, rows: Rows, name: str
) -> None:
    con.execute(f"ATTACH '{tmp_path}' AS ns (TYPE lance)")
    sql = f"SELECT max({name}.id), count({name}.s) FROM {name} AT (VERSION => 1) WHERE {name}.id > 1"
    assert rows(con, sql) == con.sql(sql).fetchall() == [(2, 1)]
    con.execute(f"BEGIN; DELETE FROM {name}")
    assert rows(con, sql) == [(2, 1)]
    con.execute("ROLLBACK")
