"""Changes with parameters, types and other writers; `statements/lance/rows.sql` has the rest."""

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
from lance_duck.errors import InvalidInputError

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


def test_parameters_reach_their_clause(con: ld.Connection) -> None:
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
def test_executemany_creates_one_version(
    con: ld.Connection, folder: Path, sql: str, sets: list[Any], changed: list[tuple[Any, ...]]
) -> None:
    version = ld.dataset(folder / "trips.lance").version
    con.executemany(sql, sets)
    assert ld.dataset(folder / "trips.lance").version == version + 1
    assert [row for row in rows(con) if row not in ROWS] == changed
    with pytest.raises(InvalidInputError, match="needs parameters"):
        con.executemany(sql, [])


def test_a_failed_executemany_leaves_nothing(con: ld.Connection, folder: Path) -> None:
    files = sorted(path.name for path in (folder / "trips.lance").rglob("*.*"))
    for sql in ("INSERT INTO trips (id) VALUES (?)", "UPDATE trips SET id = ?", "DELETE FROM trips WHERE id = ?::INT"):
        with pytest.raises((duckdb.Error, InvalidInputError)):
            con.executemany(sql, [[1], [2], ["no number"]])
    assert rows(con) == ROWS
    assert sorted(path.name for path in (folder / "trips.lance").rglob("*.*")) == files


def test_counts_and_rows_are_returned_like_in_duckdb(con: ld.Connection) -> None:
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


def test_native_tables_and_caller_variables_are_read_but_not_changed(con: ld.Connection) -> None:
    con.execute("CREATE TABLE own AS SELECT 50 AS id, 'own' AS city")
    frame = pa.table({"id": [51], "city": ["frame"]})
    con.execute("INSERT INTO trips SELECT * FROM own UNION ALL SELECT * FROM frame")
    con.execute("UPDATE trips SET city = f.city || '!' FROM frame f WHERE trips.id = f.id")
    con.execute("DELETE FROM trips USING own WHERE trips.id = own.id OR trips.id < 7")
    assert rows(con) == [(7, "z"), (51, "frame!")]
    assert con.execute("UPDATE own SET id = 1 RETURNING *").fetchall() == [(1, "own")]
    assert frame.num_rows == 1


def test_all_references_to_a_table_read_one_version(con: ld.Connection, folder: Path) -> None:
    def grow(x: int) -> int:
        ld.write_dataset(pa.table({"id": [1000], "city": ["late"]}), folder / "trips.lance", mode="append")
        return x

    con.create_function("grow", grow, ["BIGINT"], "BIGINT", side_effects=True)
    con.execute("INSERT INTO trips SELECT grow(max(id)), count(*) FROM trips")
    assert (7, "7") in rows(con)
    con.execute("DELETE FROM trips WHERE id = grow((SELECT count(*) FROM trips WHERE id < 1000)) - 3")
    assert [row for row in rows(con) if row[0] == 5] == []
    assert len([row for row in rows(con) if row[0] == 1000]) >= 2


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
def test_values_of_every_type_are_stored(
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


def test_blobs_keep_their_bytes_if_other_columns_change(tmp_path: Path, connect: Connect) -> None:
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


def test_connected_datasets_move_to_the_new_version(folder: Path, connect: Connect) -> None:
    trips = ld.dataset(folder / "trips.lance")
    con = connect({"trips": trips})
    con.execute("DELETE FROM trips WHERE id = 0")
    assert (trips.version, trips.count_rows()) == (4, 6)
    part = ld.dataset(folder / "trips.lance")
    assert part.version == 4


def test_a_change_is_rebased_on_concurrent_commits(con: ld.Connection, folder: Path) -> None:
    calls: list[int] = []

    def meddle(x: int) -> int:
        if not calls:
            calls.append(x)
            lance.dataset(folder / "trips.lance").update({"city": "'theirs'"}, where="id = 2")
        return x

    con.create_function("meddle", meddle, ["BIGINT"], "BIGINT", side_effects=True)
    con.execute("UPDATE trips SET city = city || '!' WHERE id = 2 AND meddle(id) = 2")
    assert (2, "theirs!") in rows(con)


def test_an_interrupt_leaves_nothing_behind(con: ld.Connection, folder: Path) -> None:
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


def test_unfetched_rows_do_not_block_a_change(con: ld.Connection) -> None:
    con.execute("FROM trips ORDER BY id").fetchone()
    assert con.execute("INSERT INTO trips VALUES (90, 'z')").fetchall() == [(1,)]
    con.execute("FROM range(3)").fetchone()
    assert con.execute("UPDATE trips SET city = 'y' WHERE id = 90").fetchall() == [(1,)]


def test_each_executemany_row_sees_earlier_rows(con: ld.Connection) -> None:
    con.executemany("INSERT INTO trips SELECT max(id) + 1, ? FROM trips", [["p"], ["q"]])
    assert con.execute("SELECT id, city FROM trips WHERE city IN ('p', 'q') ORDER BY id").fetchall() == [
        (8, "p"),
        (9, "q"),
    ]
