"""INSERT, DELETE, UPDATE and TRUNCATE of Lance tables: spellings, parameters, results, refusals."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError

Connect = Callable[..., ld.Connection]
ROWS = [(0, "a"), (1, "b"), (2, "c"), (3, "a"), (4, "b"), (5, "x"), (7, "z")]


def rows(con: ld.Connection, table: str = "trips") -> list[tuple[Any, ...]]:
    return con.execute(f"FROM {table} ORDER BY ALL").fetchall()


def test_changes_are_versions_that_pylance_reads(con: ld.Connection, folder: Path) -> None:
    assert con.execute("INSERT INTO trips VALUES (10, 'new')").fetchall() == [(1,)]
    assert con.execute("UPDATE trips SET city = upper(city) WHERE id < 2").fetchall() == [(2,)]
    assert con.execute("DELETE FROM trips WHERE id IN (3, 4)").fetchall() == [(2,)]
    theirs = lance.dataset(folder / "trips.lance")
    assert theirs.version == 6
    assert sorted(theirs.to_table().to_pydict()["city"]) == ["A", "B", "c", "new", "x", "z"]
    assert con.execute("TRUNCATE TABLE trips").fetchall() == [(6,)]
    assert lance.dataset(folder / "trips.lance").count_rows() == 0


@pytest.mark.parametrize("name", ["trips", "TRIPS", '"trips"', "lance.trips", "lance.main.trips", "main.trips"])
def test_a_table_is_changed_by_every_name_that_it_has(con: ld.Connection, name: str) -> None:
    con.execute(f"DELETE FROM {name} WHERE id > 0")
    con.execute(f"UPDATE {name} SET city = (SELECT count(*) FROM {name})")
    con.execute(f"INSERT INTO {name} SELECT id + 1, city FROM {name}")
    assert rows(con) == [(0, "1"), (1, "1")]


def test_a_table_is_changed_by_its_path(plain_folder: Path, connect: Connect) -> None:
    path = plain_folder / "it's.lance"
    ld.write_dataset(pa.table({"id": [1, 2]}), path)
    con, spelled = connect(), str(path).replace("'", "''")
    con.execute(f"INSERT INTO '{spelled}' SELECT id + 10 FROM '{spelled}'")
    con.execute(f"DELETE FROM '{spelled}' WHERE \"it's\".id = 1")
    con.execute(f"UPDATE '{spelled}' x SET id = -x.id WHERE id IN (SELECT max(id) FROM '{spelled}')")
    assert rows(con, f"'{spelled}'") == [(-12,), (2,), (11,)]
    with pytest.raises(NotFoundError):
        con.execute(f"DELETE FROM '{plain_folder}/missing.lance'")


@pytest.fixture
def plain_folder(tmp_path: Path) -> Path:
    return tmp_path


HOSTILE = ["odd name", 'quo"te', "semi;colon", "-- comment", "*;-- ", "$1", "?", "select", "ünï", "CASE", "it's"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_tables_and_columns_are_quoted(tmp_path: Path, connect: Connect, name: str) -> None:
    ld.write_dataset(pa.table({name: [1, 2, 3], "b": [4, 5, 6]}), tmp_path / f"{name}.lance")
    con, spelled = connect(tmp_path), '"' + name.replace('"', '""') + '"'
    con.execute(f"INSERT INTO {spelled} ({spelled}) VALUES (9), (?)", [10])
    con.execute(f"UPDATE {spelled} SET {spelled} = {spelled}.{spelled} + (SELECT max(b) FROM {spelled}) WHERE b = 4")
    assert con.execute(f"DELETE FROM {spelled} WHERE b = 5 RETURNING {spelled}").fetchall() == [(2,)]
    assert rows(con, spelled) == [(3, 6), (7, 4), (9, None), (10, None)]


def test_parameters_reach_the_clause_that_uses_them(con: ld.Connection) -> None:
    con.execute("INSERT INTO trips VALUES (?, ?), (?, 'x?')", [20, "it's ?", 21])
    con.execute("UPDATE trips SET city = $2 WHERE id = $1 AND city <> $2", [20, "two"])
    con.execute("DELETE FROM trips WHERE id = $low OR id = $high", {"low": 0, "high": 21})
    sql = "WITH q AS (SELECT ? AS k) UPDATE trips SET city = ? FROM q WHERE id = k AND id < ? RETURNING id + ?, city"
    assert con.execute(sql, [1, "p", 3, 100]).fetchall() == [(101, "p")]
    assert rows(con)[-1] == (20, "two")
    for parameters in ([1], [1, 2, 3], {"a": 1}):
        with pytest.raises((InvalidInputError, duckdb.Error)):
            con.execute("DELETE FROM trips WHERE id BETWEEN ? AND ?", parameters)
    assert con.sql("DELETE FROM trips WHERE id = ?", params=[2]).fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "sets", "changed"),
    [
        ("INSERT INTO trips VALUES (?, ?)", [[10, "k"], [11, "l"]], [(10, "k"), (11, "l")]),
        ("INSERT INTO trips (id) SELECT max(id) + ? FROM trips", [[10], [20]], [(17, None), (37, None)]),
        ("UPDATE trips SET id = id + $by WHERE id >= 7", [{"by": 1}, {"by": 2}], [(10, "z")]),
        ("DELETE FROM trips WHERE id = ?", [[0], [7], [99]], []),
    ],
)
def test_many_sets_of_parameters_make_one_version(
    con: ld.Connection, folder: Path, sql: str, sets: list[Any], changed: list[tuple[Any, ...]]
) -> None:
    version = ld.dataset(folder / "trips.lance").version
    con.executemany(sql, sets)
    assert ld.dataset(folder / "trips.lance").version == version + 1
    assert [row for row in rows(con) if row not in ROWS] == changed
    with pytest.raises(InvalidInputError, match="without parameters"):
        con.executemany(sql, [])


def test_a_set_of_parameters_that_fails_leaves_nothing_of_those_before_it(con: ld.Connection, folder: Path) -> None:
    files = sorted(path.name for path in (folder / "trips.lance").rglob("*.*"))
    for sql in ("INSERT INTO trips (id) VALUES (?)", "UPDATE trips SET id = ?", "DELETE FROM trips WHERE id = ?::INT"):
        with pytest.raises((duckdb.Error, InvalidInputError)):
            con.executemany(sql, [[1], [2], ["no number"]])
    assert rows(con) == ROWS
    assert sorted(path.name for path in (folder / "trips.lance").rglob("*.*")) == files


def test_counts_and_rows_come_as_from_duckdb(con: ld.Connection) -> None:
    assert con.execute("DELETE FROM trips WHERE id < 2").fetchone() == (2,)
    assert con.fetchone() is None
    con.execute("UPDATE trips SET city = 'u'")
    assert con.rowcount == 5
    assert con.description[0][0] == "Count"
    assert con.sql("SELECT count(*) FROM trips").fetchall() == [(5,)]
    assert con.execute("DELETE FROM trips WHERE id = 99").fetchall() == [(0,)]
    assert con.sql("INSERT INTO trips VALUES (1, 'q')").fetchall() == [(1,)]
    relation = con.sql("UPDATE trips SET id = -id WHERE city = 'q' RETURNING id, id AS again, city")
    assert relation.columns == ["id", "again", "city"]
    assert relation.fetchall() == [(-1, -1, "q")]
    assert con.execute("SELECT 1").rowcount == -1


def test_a_change_that_finds_no_row_makes_no_version(con: ld.Connection, folder: Path) -> None:
    for sql in (
        "DELETE FROM trips WHERE false",
        "UPDATE trips SET id = 1 WHERE false",
        "INSERT INTO trips SELECT * FROM trips WHERE false",
    ):
        assert con.execute(sql).fetchall() == [(0,)]
    assert ld.dataset(folder / "trips.lance").version == 3


def test_explain_says_what_would_be_read_and_writes_nothing(con: ld.Connection, folder: Path) -> None:
    for explain in ("EXPLAIN", "EXPLAIN ANALYZE"):
        for sql in (
            "DELETE FROM trips WHERE id = 1",
            "UPDATE trips SET id = 1",
            "INSERT INTO trips SELECT * FROM trips",
            "INSERT INTO trips VALUES (1, 'a')",
        ):
            plan = con.execute(f"{explain} {sql}").fetchall()
            assert plan[-1] == (
                "lance_change",
                "The plan is that of the rows that would be changed. Nothing was written.",
            )
    assert ld.dataset(folder / "trips.lance").version == 3


def test_read_only_connections_refuse_changes_before_they_run(folder: Path, connect: Connect) -> None:
    con = connect(folder, read_only=True)
    for sql in (
        "INSERT INTO trips SELECT error('evaluated'), 'a'",
        "DELETE FROM lance.trips",
        "UPDATE trips SET id = 1",
        "TRUNCATE trips",
        f"DELETE FROM '{folder}/trips.lance'",
        "WITH q AS (SELECT 1) DELETE FROM trips",
        "SELECT 1; DELETE FROM trips",
    ):
        with pytest.raises(UnsupportedError, match="read-only"):
            con.execute(sql)
        with pytest.raises(UnsupportedError, match="read-only"):
            con.cursor().execute(sql)
    assert rows(con) == ROWS
    assert con.execute("CREATE TABLE own AS SELECT 1 AS a; INSERT INTO own VALUES (2)").fetchall() == [(1,)]


def test_tables_of_duckdb_and_of_the_caller_are_read_and_not_changed(con: ld.Connection) -> None:
    con.execute("CREATE TABLE own AS SELECT 50 AS id, 'own' AS city")
    frame = pa.table({"id": [51], "city": ["frame"]})
    con.execute("INSERT INTO trips SELECT * FROM own UNION ALL SELECT * FROM frame")
    con.execute("UPDATE trips SET city = f.city || '!' FROM frame f WHERE trips.id = f.id")
    con.execute("DELETE FROM trips USING own WHERE trips.id = own.id OR trips.id < 7")
    assert rows(con) == [(7, "z"), (51, "frame!")]
    assert con.execute("UPDATE own SET id = 1 RETURNING *").fetchall() == [(1, "own")]
    assert frame.num_rows == 1


def test_a_table_of_duckdb_hides_one_of_ours_that_a_qualified_name_still_means(con: ld.Connection) -> None:
    con.execute("CREATE TABLE trips AS SELECT 99 AS id, 'mine' AS city")
    con.execute("INSERT INTO lance.trips SELECT * FROM trips")
    con.execute("DELETE FROM trips")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(0,)]
    assert rows(con, "lance.trips")[-1] == (99, "mine")
    con.execute("UPDATE lance.trips SET id = 100 WHERE lance.trips.id = (SELECT max(lance.trips.id) FROM lance.trips)")
    assert rows(con, "lance.trips")[-1] == (100, "mine")
    assert con.execute("SHOW TABLES").fetchall() == [("dim",), ("odd name",), ("trips",), ("trips",)]


def test_all_mentions_of_a_table_are_of_one_version(con: ld.Connection, folder: Path) -> None:
    def grow(x: int) -> int:
        ld.write_dataset(pa.table({"id": [1000], "city": ["late"]}), folder / "trips.lance", mode="append")
        return x

    con.create_function("grow", grow, ["BIGINT"], "BIGINT", side_effects=True)
    con.execute("INSERT INTO trips SELECT grow(max(id)), count(*) FROM trips")
    assert (7, "7") in rows(con)
    con.execute("DELETE FROM trips WHERE id = grow((SELECT count(*) FROM trips WHERE id < 1000)) - 3")
    assert [row for row in rows(con) if row[0] == 5] == []
    assert len([row for row in rows(con) if row[0] == 1000]) >= 2


def test_several_statements_run_one_after_the_other(con: ld.Connection, folder: Path) -> None:
    text = (
        "DELETE FROM trips WHERE id = 1; -- one; two\nINSERT INTO trips VALUES (8, ';'); SELECT max(id), ? FROM trips;"
    )
    assert con.execute(text, [5]).fetchall() == [(8, 5)]
    assert ld.dataset(folder / "trips.lance").version == 5


def test_errors_are_about_the_statement_as_it_was_written(con: ld.Connection, folder: Path) -> None:
    for sql, found in {
        "DELETE FROM trips WHERE": "syntax error",
        "UPDATE trips SET id = 1 LIMIT 3": 'at or near "LIMIT"',
        "DELETE FROM trips WHERE id = 1 ORDER BY id LIMIT 1": 'at or near "ORDER"',
        "UPDATE trips SET nope = 1": "no column 'nope'",
        "UPDATE trips SET id = nope": "nope",
        "INSERT INTO trips (id, id) VALUES (1, 2)": "named twice",
        "INSERT INTO trips VALUES (1)": "expected 2 values, found 1",
        "INSERT INTO trips SELECT 1": "expected 2 values, found 1",
        "INSERT INTO trips BY NAME SELECT 1 AS nope": "no column 'nope'",
        "INSERT INTO trips (id) BY NAME SELECT 1 AS id": "BY NAME",
        "INSERT INTO trips (id) VALUES ('x')": "Could not convert string 'x'",
        "DELETE FROM trips RETURNING sum(id)": "aggregate",
        "UPDATE trips SET id = 1, id = 2": "named twice",
        "DELETE FROM nowhere": "nowhere",
    }.items():
        with pytest.raises((duckdb.Error, ld.errors.LanceDuckError), match="(?i)" + found.replace("(", "\\(")):
            con.execute(sql)
    assert ld.dataset(folder / "trips.lance").version == 3
    assert rows(con) == ROWS


TYPES: list[tuple[pa.DataType, str, Any]] = [
    (pa.int8(), "127", 127),
    (pa.uint64(), "18446744073709551615", 18446744073709551615),
    (pa.float16(), "1.5", 1.5),
    (pa.float32(), "'2.5'", 2.5),
    (pa.decimal128(38, 10), "1.5", Decimal("1.5000000000")),
    (pa.decimal128(9, 2), "'1.25'", Decimal("1.25")),
    (pa.large_string(), "'é'", "é"),
    (pa.binary(), r"'\x00a'::BLOB", b"\0a"),
    (pa.large_binary(), r"'\xff'::BLOB", b"\xff"),
    (pa.date32(), "'2020-02-29'", dt.date(2020, 2, 29)),
    (pa.time64("us"), "'12:30:00.000001'", dt.time(12, 30, 0, 1)),
    (pa.timestamp("us"), "'2020-01-01 00:00:01'", dt.datetime(2020, 1, 1, 0, 0, 1)),
    (pa.timestamp("s"), "TIMESTAMP '2020-01-01'", dt.datetime(2020, 1, 1)),
    (pa.duration("us"), "INTERVAL 90 SECOND", dt.timedelta(seconds=90)),
    (pa.duration("s"), "INTERVAL 1 DAY", dt.timedelta(days=1)),
    (pa.bool_(), "'true'", True),
    (pa.list_(pa.float32(), 2), "[1, 2]", [1.0, 2.0]),
    (pa.list_(pa.float16(), 2), "[1, 2]", [1.0, 2.0]),
    (pa.list_(pa.string()), "['a', NULL]", ["a", None]),
    (pa.large_list(pa.int16()), "[1]", [1]),
    (pa.struct([("x", pa.int32()), ("y z", pa.string())]), "{'x': 1, 'y z': 'q'}", {"x": 1, "y z": "q"}),
    (pa.map_(pa.string(), pa.int32()), "MAP {'k': 1}", [("k", 1)]),
    (pa.dictionary(pa.int32(), pa.string()), "'word'", "word"),
    (pa.uuid(), "'00000000-0000-0000-0000-000000000001'", None),
    (pa.json_(), """'{"a": 1}'""", '{"a":1}'),
]


@pytest.mark.parametrize(
    ("type_", "literal", "value"), TYPES, ids=lambda part: str(part) if isinstance(part, pa.DataType) else ""
)
def test_values_of_each_type_are_stored(
    tmp_path: Path, connect: Connect, type_: pa.DataType, literal: str, value: Any
) -> None:
    empty = pa.schema([("id", pa.int32()), pa.field("v", type_)]).empty_table()
    ld.write_dataset(empty, tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute(f"INSERT INTO t VALUES (1, {literal}), (2, NULL)")
    con.execute("INSERT INTO t SELECT id + 2, v FROM t")
    con.execute(f"UPDATE t SET v = {literal} WHERE id = 2")
    returned = con.execute("UPDATE t SET v = v WHERE id = 3 RETURNING v").fetchall()
    assert returned == con.execute("SELECT v FROM t WHERE id = 1").fetchall()
    stored = ld.dataset(tmp_path / "t.lance").to_table().sort_by("id")["v"]
    assert stored.type == type_
    if value is not None:
        assert [v if not isinstance(v, str) else v.replace(" ", "") for v in stored.to_pylist()] == [value] * 3 + [None]
    assert stored.null_count == 1


def test_blobs_stay_when_other_columns_change(tmp_path: Path, connect: Connect) -> None:
    schema = pa.schema(
        [pa.field("id", pa.int32()), pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})]
    )
    ld.write_dataset(pa.table({"id": [1, 2], "b": [b"x" * 5000, b"y"]}, schema=schema), tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("UPDATE t SET id = id + 10 WHERE id = 1")
    con.execute("INSERT INTO t VALUES (3, 'z'::BLOB)")
    table = ld.dataset(tmp_path / "t.lance")
    assert sorted(table.to_table(columns=["id"])["id"].to_pylist()) == [2, 3, 11]
    assert {blob.readall() for blob in table.take_blobs("b", indices=[0, 1, 2])} == {b"x" * 5000, b"y", b"z"}


def test_stable_row_ids_and_indexes_stay_true(tmp_path: Path, connect: Connect) -> None:
    ld.write_dataset(pa.table({"id": range(100), "s": ["a"] * 100}), tmp_path / "t.lance", enable_stable_row_ids=True)
    table = ld.dataset(tmp_path / "t.lance")
    table.create_scalar_index("id", "BTREE")
    before = table.to_table(columns=["id", "_rowid"], filter="id IN (7, 8)").sort_by("id")["_rowid"].to_pylist()
    con = connect(tmp_path)
    con.execute("UPDATE t SET s = 'u' WHERE id IN (7, 8)")
    con.execute("DELETE FROM t WHERE id BETWEEN 10 AND 20")
    con.execute("INSERT INTO t VALUES (7, 'again')")
    table = ld.dataset(tmp_path / "t.lance")
    after = table.to_table(columns=["id", "s", "_rowid"], filter="id IN (7, 8) AND s = 'u'").sort_by("id")
    assert after["_rowid"].to_pylist() == before
    assert con.execute("SELECT s FROM t WHERE id = 7 ORDER BY s").fetchall() == [("again",), ("u",)]
    assert con.execute("SELECT count(*) FROM t WHERE id BETWEEN 5 AND 25").fetchall() == [(11,)]


def test_datasets_that_were_handed_over_move_with_the_change(folder: Path, connect: Connect) -> None:
    trips = ld.dataset(folder / "trips.lance")
    con = connect({"trips": trips})
    con.execute("DELETE FROM trips WHERE id = 0")
    assert (trips.version, trips.count_rows()) == (4, 6)
    part = ld.dataset(folder / "trips.lance")
    assert part.version == 4


def test_other_writers_between_the_read_and_the_commit_are_followed(con: ld.Connection, folder: Path) -> None:
    calls: list[int] = []

    def meddle(x: int) -> int:
        if not calls:
            calls.append(x)
            lance.dataset(folder / "trips.lance").update({"city": "'theirs'"}, where="id = 2")
        return x

    con.create_function("meddle", meddle, ["BIGINT"], "BIGINT", side_effects=True)
    con.execute("UPDATE trips SET city = city || '!' WHERE id = 2 AND meddle(id) = 2")
    assert (2, "theirs!") in rows(con)


def test_an_interrupt_leaves_nothing_half_done(con: ld.Connection, folder: Path) -> None:
    def stop(_: int) -> int:
        raise KeyboardInterrupt

    con.create_function("stop", stop, ["BIGINT"], "BIGINT", side_effects=True)
    files = sorted(path.name for path in (folder / "trips.lance").rglob("*.*"))
    for sql in (
        "UPDATE trips SET id = stop(id)",
        "DELETE FROM trips WHERE stop(id) = 1",
        "INSERT INTO trips (id) SELECT stop(id) FROM trips",
    ):
        with pytest.raises((KeyboardInterrupt, duckdb.Error)):
            con.execute(sql)
    assert rows(con) == ROWS
    assert sorted(path.name for path in (folder / "trips.lance").rglob("*.*")) == files


def test_rows_that_nobody_fetched_do_not_stop_a_change(con: ld.Connection) -> None:
    con.execute("FROM trips ORDER BY id").fetchone()
    assert con.execute("INSERT INTO trips VALUES (90, 'z')").fetchall() == [(1,)]
    con.execute("FROM range(3)").fetchone()
    assert con.execute("UPDATE trips SET city = 'y' WHERE id = 90").fetchall() == [(1,)]


def test_a_source_with_effects_is_read_once(con: ld.Connection) -> None:
    con.execute("CREATE SEQUENCE ids START 100")
    con.execute("INSERT INTO trips SELECT nextval('ids'), 'n' FROM range(2)")
    assert con.execute("SELECT id FROM trips WHERE city = 'n' ORDER BY id").fetchall() == [(100,), (101,)]


def test_each_set_of_parameters_sees_the_rows_of_those_before(con: ld.Connection) -> None:
    con.executemany("INSERT INTO trips SELECT max(id) + 1, ? FROM trips", [["p"], ["q"]])
    assert con.execute("SELECT id, city FROM trips WHERE city IN ('p', 'q') ORDER BY id").fetchall() == [
        (8, "p"),
        (9, "q"),
    ]


def test_distinct_from_begins_no_clause(con: ld.Connection) -> None:
    assert con.execute(
        "UPDATE trips SET city = 'd' WHERE id IS DISTINCT FROM 3 AND id IS NOT DISTINCT FROM 4"
    ).fetchall() == [(1,)]
    assert con.execute("UPDATE trips SET city = (id IS DISTINCT FROM 3)::VARCHAR WHERE id = 3").fetchall() == [(1,)]
    assert con.execute("SELECT city FROM trips WHERE id IN (3, 4) ORDER BY id").fetchall() == [("false",), ("d",)]
