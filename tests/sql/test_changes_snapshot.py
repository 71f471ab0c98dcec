"""Reads between BEGIN and COMMIT: one version of each table, plus the changes of the transaction."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

Rows = list[tuple[Any, ...]]
Run = Callable[[ld.Connection, str], Rows]
RUNS: list[Run] = [
    lambda con, sql: con.execute(sql).fetchall(),
    lambda con, sql: con.sql(sql).fetchall(),
    lambda con, sql: con.sql(sql).filter("true").fetchall(),
]
OTHERS_INSERT = {"id": [50, 51], "city": ["o", "o"]}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "name",
    [
        "trips",
        "TRIPS",
        "lance.trips",
        "main.trips",
        "lance.main.trips",
        "'{folder}/trips.lance'",
        "lance_scan('trips')",
        "lance_scan('{folder}/trips.lance')",
        "(FROM trips)",
        "view_of_trips",
        "macro_of_trips()",
    ],
)
def test_every_table_name_reads_changes_of_the_transaction(
    con: ld.Connection, folder: Path, name: str, run: Run
) -> None:
    con.execute("CREATE VIEW view_of_trips AS FROM trips; CREATE MACRO macro_of_trips() AS TABLE FROM trips")
    con.execute("BEGIN; DELETE FROM trips WHERE id < 3")
    sql = f"SELECT count(*) FROM {name.format(folder=folder)}"
    assert run(con, sql) == [(4,)]
    target = name if name.endswith(".trips") else "trips"
    con.execute(f"INSERT INTO {target} VALUES (9, 'n')")
    assert run(con, sql) == [(5,)]
    con.execute("ROLLBACK")
    assert run(con, sql) == [(7,)]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "name",
    [
        "trips",
        "lance.trips",
        "'{folder}/trips.lance'",
        "lance_scan('trips')",
        "lance_scan('{folder}/trips.lance')",
        "view_of_trips",
        "macro_of_trips()",
    ],
)
def test_reads_in_a_transaction_are_repeatable(con: ld.Connection, folder: Path, name: str, run: Run) -> None:
    con.execute("CREATE VIEW view_of_trips AS FROM trips; CREATE MACRO macro_of_trips() AS TABLE FROM trips")
    sql = f"SELECT count(*), max(id) FROM {name.format(folder=folder)}"
    con.begin()
    assert run(con, "SELECT count(*) FROM trips") == [(7,)]
    assert run(con, sql) == [(7, 7)]
    lance.dataset(folder / "trips.lance").insert(pa.table(OTHERS_INSERT))
    if "_trips" in name and run is RUNS[0]:
        con.execute("SELECT 1 FROM trips")  # names in views are resolved like in statements
    assert run(con, "SELECT count(*) FROM trips") == [(7,)]
    assert run(con, sql) == [(7, 7)]
    con.commit()
    assert run(con, sql) == [(9, 51)]


def test_a_relation_of_a_transaction_reads_its_version(con: ld.Connection, folder: Path) -> None:
    con.begin()
    relations = [con.sql("FROM trips"), con.sql("FROM lance_scan('trips')"), con.table("trips"), con.view("trips")]
    lance.dataset(folder / "trips.lance").insert(pa.table(OTHERS_INSERT))
    assert [len(relation.fetchall()) for relation in relations] == [7] * 4
    assert [len(relation.filter("id < 3").fetchall()) for relation in relations] == [3] * 4
    con.commit()
    assert len(con.sql("FROM trips").fetchall()) == 9


def test_a_transaction_keeps_the_first_version_read_through_a_tag(con: ld.Connection, folder: Path) -> None:
    sql = "SELECT count(*) FROM lance_scan('trips', tag := 'second')"
    con.begin()
    assert con.execute(sql).fetchall() == [(8,)]
    lance.dataset(folder / "trips.lance").tags.update("second", 1)
    assert con.execute(sql).fetchall() == [(8,)]
    con.commit()
    assert con.execute(sql).fetchall() == [(5,)]


def test_searches_find_rows_written_in_the_transaction(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    vectors = pa.array([[float(i), 0.0] for i in range(300)], pa.list_(pa.float32(), 2))
    table = ld.write_dataset(pa.table({"id": range(300), "vec": vectors}), tmp_path / "t.lance")
    table.create_index("vec", "IVF_FLAT", num_partitions=4)
    table.create_scalar_index("id", "BTREE")
    con = connect(tmp_path)
    con.execute("BEGIN; INSERT INTO t VALUES (900, [7.25, 0]); DELETE FROM t WHERE id = 7")
    nearest = "SELECT id FROM {} ORDER BY array_distance(vec, [7.2, 0]::FLOAT[2]) LIMIT 2"
    for sql in (
        nearest.format("t"),
        nearest.format("lance.t"),
        "SELECT id FROM lance_vector_search('t', 'vec', [7.2, 0]::FLOAT[], k := 2)",
        f"SELECT id FROM lance_vector_search('{tmp_path}/t.lance', 'vec', [7.2, 0]::FLOAT[], k := 2)",
    ):
        for run in RUNS:
            assert run(con, sql) == [(900,), (8,)], sql
    for sql, ids in (("id = 7", []), ("id = 900", [(900,)]), ("id IN (6, 7, 900)", [(6,), (900,)])):
        for run in RUNS:
            assert sorted(run(con, f"SELECT id FROM t WHERE {sql}")) == ids
    con.execute("ROLLBACK")
    assert con.execute("SELECT id FROM t WHERE id IN (7, 900)").fetchall() == [(7,)]


def test_changes_start_from_the_version_that_was_read(con: ld.Connection, folder: Path) -> None:
    con.begin()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    lance.dataset(folder / "trips.lance").insert(pa.table(OTHERS_INSERT))
    assert con.execute("UPDATE trips SET city = 'mine' RETURNING id").df()["id"].tolist() == [0, 1, 2, 3, 4, 5, 7]
    con.commit()
    assert con.execute("SELECT count(*) FROM trips WHERE city = 'mine'").fetchall() == [(7,)]
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(9,)]


def test_tables_read_in_a_transaction_keep_their_version(con: ld.Connection, folder: Path) -> None:
    con.begin()
    assert con.execute("SELECT count(*) FROM dim").fetchall() == [(3,)]
    lance.dataset(folder / "dim.lance").insert(pa.table({"city": ["z"], "name": ["Zz"]}))
    assert con.execute("DELETE FROM trips USING dim WHERE dim.city = trips.city").fetchall() == [(5,)]
    assert con.execute("INSERT INTO trips SELECT 60, name FROM lance.dim").fetchall() == [(3,)]
    assert con.execute("INSERT INTO trips SELECT 70, name FROM lance_scan('dim')").fetchall() == [(3,)]
    assert con.execute(f"INSERT INTO trips SELECT 80, name FROM '{folder}/dim.lance'").fetchall() == [(3,)]
    con.commit()
    assert con.execute("SELECT count(*) FROM trips, dim").fetchall() == [(11 * 4,)]


def test_other_cursors_do_not_see_uncommitted_versions(con: ld.Connection) -> None:
    other = con.cursor()
    con.execute("CREATE VIEW memory.v AS FROM lance.trips; BEGIN; TRUNCATE trips")
    for name in ("trips", "lance.trips", "lance_scan('trips')", "v"):
        if name != "v":
            assert con.execute(f"SELECT count(*) FROM {name}").fetchall() == [(0,)]
        assert other.execute(f"SELECT count(*) FROM {name}").fetchall() == [(7,)]
    if SPEAKS_SOURCE:
        with pytest.raises(UnsupportedError, match="read the table directly in the statement"):
            con.execute("FROM v")
    else:
        assert con.execute("SELECT count(*) FROM v").fetchall() == [(0,)]
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*) FROM v").fetchall() == [(7,)]


def test_a_path_inside_a_string_literal_is_not_a_table(con: ld.Connection, folder: Path) -> None:
    path = f"{folder}/trips.lance"
    con.execute("BEGIN; DELETE FROM trips WHERE id > 0")
    for sql in (
        f"SELECT '{path}', id FROM trips",
        f"SELECT concat(id, '{path}') = '0{path}', id FROM trips",
        f"SELECT city IN ('{path}', 'b'), id FROM trips",
    ):
        (row,) = con.execute(sql).fetchall()
        assert row[1] == 0
    con.execute(f"UPDATE trips SET city = '{path}' WHERE city NOT IN ('x', '{path}')")
    assert con.execute("SELECT city FROM trips").fetchall() == [(path,)]
    con.execute("ROLLBACK")
