"""BEGIN … COMMIT on Lance tables: one version or none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CommitConflictError, IncompatibleError, LanceDuckError, UnsupportedError


def ids(con: Any, table: str = "trips") -> list[int]:
    return [row[0] for row in con.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in (folder / "trips.lance").rglob("*.*"))


def test_a_transaction_commits_one_version(con: ld.Connection, folder: Path) -> None:
    other = con.cursor()
    con.begin()
    con.execute("INSERT INTO trips SELECT i, 'n' FROM range(100, 103) r(i)")
    con.execute("UPDATE trips SET id = id + 1000 WHERE city = 'n' AND id > 100")
    con.execute("DELETE FROM trips WHERE id IN (0, 100, 1101)")
    assert con.execute("INSERT INTO trips SELECT count(*), 'count' FROM trips RETURNING id").fetchall() == [(7,)]
    inside = [1, 2, 3, 4, 5, 7, 7, 1102]
    for name in ("trips", "lance.trips", "lance.main.trips", f"'{folder}/trips.lance'"):
        assert ids(con, name) == inside
    assert con.sql("SELECT count(*) FROM trips WHERE id > 100").fetchall() == [(1,)]
    assert ids(other) == [0, 1, 2, 3, 4, 5, 7]
    assert lance.dataset(folder / "trips.lance").version == 3
    con.commit()
    for reader in (con, other):
        assert ids(reader) == inside
    assert lance.dataset(folder / "trips.lance").version == 4
    assert sorted(lance.dataset(folder / "trips.lance").to_table()["id"].to_pylist()) == inside
    assert con.execute("SHOW TABLES").fetchall() == [("dim",), ("odd name",), ("trips",)]


def test_a_rollback_leaves_nothing(con: ld.Connection, folder: Path) -> None:
    before = files(folder)
    for end in ("ROLLBACK", "ABORT", "rollback transaction"):
        con.execute("BEGIN TRANSACTION; UPDATE trips SET city = 'x'; DELETE FROM trips WHERE id = 1; TRUNCATE trips")
        assert ids(con) == []
        con.execute(end) if end != "ABORT" else con.rollback()
        assert ids(con) == [0, 1, 2, 3, 4, 5, 7]
        assert files(folder) == before
    con.execute("BEGIN; DELETE FROM trips WHERE false; COMMIT")
    assert files(folder) == before


def test_a_failed_statement_aborts_the_transaction(con: ld.Connection, folder: Path) -> None:
    before = files(folder)
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1")
    with pytest.raises((duckdb.Error, LanceDuckError)):
        con.execute("UPDATE trips SET id = 'no number'::INT")
    with pytest.raises(LanceDuckError, match="nothing was committed"):
        con.execute("COMMIT")
    assert ids(con) == [0, 1, 2, 3, 4, 5, 7]
    assert files(folder) == before
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1; COMMIT")
    assert ids(con) == [0, 2, 3, 4, 5, 7]


def test_a_commit_keeps_concurrent_changes_of_other_rows(con: ld.Connection, folder: Path) -> None:
    con.execute("BEGIN; UPDATE trips SET city = 'mine' WHERE id = 1; DELETE FROM trips WHERE id = 2")
    theirs = lance.dataset(folder / "trips.lance")
    theirs.delete("id = 3")
    theirs.insert(pa.table({"id": [50], "city": ["theirs"]}))
    con.execute("COMMIT")
    assert ids(con) == [0, 1, 4, 5, 7, 50]
    assert con.execute("SELECT city FROM trips WHERE id = 1").fetchall() == [("mine",)]


def test_a_conflict_on_a_row_commits_nothing(con: ld.Connection, folder: Path) -> None:
    before = set(files(folder))
    con.execute("BEGIN; DELETE FROM trips WHERE id IN (1, 2)")
    mine = set(files(folder)) - before
    lance.dataset(folder / "trips.lance").update({"city": "'theirs'"}, where="id = 2")
    after = sorted(set(files(folder)) - mine)
    with pytest.raises(CommitConflictError):
        con.execute("COMMIT")
    assert ids(con) == [0, 1, 2, 3, 4, 5, 7]
    assert files(folder) == after
    con.execute("BEGIN; DELETE FROM trips WHERE id IN (1, 2); COMMIT")
    assert ids(con) == [0, 3, 4, 5, 7]


def test_many_sets_of_parameters_belong_to_the_transaction(con: ld.Connection, folder: Path) -> None:
    con.begin()
    con.executemany("INSERT INTO trips VALUES (?, 'm')", [[20], [21]])
    con.executemany("UPDATE trips SET id = id + 100 WHERE id = ?", [[20], [21]])
    con.rollback()
    assert ids(con) == [0, 1, 2, 3, 4, 5, 7]
    con.begin()
    con.executemany("DELETE FROM trips WHERE id = ?", [[0], [1]])
    con.commit()
    assert ids(con) == [2, 3, 4, 5, 7]
    assert lance.dataset(folder / "trips.lance").version == 4


def test_closing_a_connection_commits_nothing(folder: Path) -> None:
    before = files(folder)
    with ld.connect(folder) as con:
        con.execute("BEGIN; DELETE FROM trips WHERE id = 1; INSERT INTO trips VALUES (9, 'x')")
    assert files(folder) == before


@pytest.mark.parametrize("stable", [True, False])
def test_rows_moved_twice_in_a_transaction_keep_their_ids(tmp_path: Path, stable: bool) -> None:
    ld.write_dataset(pa.table({"id": range(6)}), tmp_path / "t.lance", enable_stable_row_ids=stable)
    with ld.connect(tmp_path) as con:
        con.execute("BEGIN; UPDATE t SET id = id + 10 WHERE id < 4; INSERT INTO t VALUES (90), (91)")
        con.execute("UPDATE t SET id = id + 10 WHERE id IN (10, 11, 90); DELETE FROM t WHERE id IN (5, 12); COMMIT")
    columns = ["id", "_rowid"] if stable else ["id"]
    table = ld.dataset(tmp_path / "t.lance").to_table(columns=columns).sort_by("id").to_pydict()
    assert table["id"] == [4, 13, 20, 21, 91, 100]
    if stable:
        assert table["_rowid"][:4] == [4, 3, 0, 1]
        assert len(set(table["_rowid"])) == 6
    ld.dataset(tmp_path / "t.lance").validate()
    assert sorted(lance.dataset(tmp_path / "t.lance").to_table()["id"].to_pylist()) == table["id"]


@pytest.mark.parametrize("head", ["/* app */ ", "-- app\n", ";", " ; /* a */ -- b\n\t"])
def test_a_comment_before_begin_is_ignored(con: ld.Connection, folder: Path, head: str) -> None:
    trips = ld.dataset(folder / "trips.lance")
    con.execute(head + "BEGIN")
    con.execute("INSERT INTO trips VALUES (90, 'z')")
    assert trips.latest_version == trips.version
    con.execute(head + "ROLLBACK")
    assert con.execute("SELECT count(*) FROM trips WHERE id = 90").fetchall() == [(0,)]
    con.execute(con.extract_statements("BEGIN")[0])
    con.execute("INSERT INTO trips VALUES (91, 'z')")
    con.execute(head + "COMMIT")
    assert ld.dataset(folder / "trips.lance").count_rows("id = 91") == 1


@pytest.mark.parametrize(
    "change", ["INSERT INTO t VALUES (8)", "DELETE FROM t WHERE id = 1", "UPDATE t SET id = id + 10"]
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_transaction_fails_if_sql_recreated_its_table(
    tmp_path: Path, connect: Any, version: int, change: str
) -> None:
    folder = tmp_path
    ld.write_dataset(pa.table({"id": [1, 2]}), folder / "t.lance").insert(pa.table({"id": [3]}))
    con, other = connect(folder), connect(folder)
    con.execute("BEGIN; " + change)
    other.execute("DROP TABLE t; CREATE TABLE lance.t AS SELECT 100::bigint AS id")
    for _ in range(1, version):
        other.execute("INSERT INTO t VALUES (100)")
    data = sorted((folder / "t.lance" / "data").iterdir())
    with pytest.raises(IncompatibleError, match="another table replaced this one since it was read"):
        con.execute("COMMIT")
    for reader in (con, other):
        assert ids(reader, "t") == [100] * version
    assert lance.dataset(folder / "t.lance").to_table()["id"].to_pylist() == [100] * version
    assert lance.dataset(folder / "t.lance").version == version
    added = set((folder / "t.lance" / "data").iterdir()) - set(data)
    assert added == set()
    con.execute("BEGIN; INSERT INTO t VALUES (101); COMMIT")
    assert ids(other, "t") == [*[100] * version, 101]


def test_a_transaction_fails_if_pylance_recreated_its_table(con: ld.Connection, folder: Path) -> None:
    place = folder / "trips.lance"
    con.execute("BEGIN; INSERT INTO trips VALUES (8, 'n')")
    shutil.rmtree(place)
    lance.write_dataset(pa.table({"id": [100], "city": ["m"]}), place)
    with pytest.raises(IncompatibleError, match="found another table, at version 1"):
        con.execute("COMMIT")
    assert ids(con) == [100]
    assert lance.dataset(place).version == 1


def test_table_history_ends_at_the_start_of_the_transaction(con: ld.Connection) -> None:
    before = con.execute("FROM lance_table_changes('trips', 1)").fetchall()
    con.begin()
    con.execute("INSERT INTO trips VALUES (100, 'n')")
    con.execute("DELETE FROM trips WHERE id = 0")
    for call in ("'trips', 1", "'trips', NULL", "'trips', 1, 3", "'trips', '2020-01-01'"):
        assert con.execute(f"FROM lance_table_changes({call})").fetchall() == before
    info = con.execute("SELECT version, latest_version, rows FROM lance_info('trips')").fetchall()
    assert info == [(3, 3, 7)]
    for name in ("versions", "tags", "branches", "fragments", "files", "indexes", "config", "schema_metadata"):
        con.execute(f"FROM lance_{name}('trips')").fetchall()
    assert con.execute("SELECT list(version) FROM lance_versions('trips')").fetchall() == [([1, 2, 3],)]
    plan = con.execute("EXPLAIN ANALYZE SELECT city FROM trips").fetchall()[-1][1]
    assert "uncommitted, on top of version 3\n" in plan
    con.commit()
    assert con.execute("SELECT version, tags FROM lance_info('trips')").fetchall() == [(4, [])]
    assert con.execute("SELECT count(*) FROM lance_table_changes('trips', 4)").fetchall() == [(2,)]


@pytest.mark.parametrize("text", ["SELECT count(*) FROM lance.trips", "SELECT count(*) FROM seen", "FROM counted()"])
def test_extracted_statements_read_changes_of_the_transaction(con: ld.Connection, text: str) -> None:
    con.execute("CREATE VIEW seen AS FROM trips; CREATE MACRO counted() AS TABLE SELECT count(*) FROM trips")
    statement = con.extract_statements(f"{text}; -- and\nSELECT 'more'")[0]
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1")
    assert con.execute(statement).fetchall() == [(6,)]
    assert con.sql(statement).fetchall() == [(6,)]
    con.execute("ROLLBACK")
    assert con.execute(statement).fetchall() == [(7,)]


def test_extracted_pivots_read_changes_of_the_transaction_or_are_rejected(con: ld.Connection) -> None:
    text = "PIVOT (SELECT city, id FROM trips WHERE city = 'b') ON city USING count(id)"
    statements = con.extract_statements(text)
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1")
    if duckdb.__version__ < "2":
        with pytest.raises(UnsupportedError, match="without its text"):
            con.execute(statements[0])
    else:
        con.execute("INSERT INTO trips VALUES (10, 'b'), (11, 'b')")
        assert con.execute(statements[0]).fetchall() == [(3,)]


def test_view_objects_read_changes_of_the_transaction(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE VIEW seen AS SELECT id FROM trips")
    con.execute("BEGIN; DELETE FROM trips WHERE id = 1")
    for relation in (con.view("trips"), con.view("lance.trips"), con.view("seen"), con.table("trips")):
        assert relation.aggregate("count(*)").fetchall() == [(6,)]
    lance.dataset(folder / "trips.lance").delete("id = 2")
    assert con.view("trips").aggregate("count(*)").fetchall() == [(6,)]
    con.execute("ROLLBACK")
    assert con.view("trips").aggregate("count(*)").fetchall() == [(6,)]
    with pytest.raises(duckdb.Error, match="nowhere"):
        con.view("nowhere")


def test_a_script_changes_tables_after_a_result_that_was_not_fetched(con: ld.Connection) -> None:
    con.execute("BEGIN; CREATE TEMP TABLE keys AS SELECT 1 AS id; SELECT version()")
    con.execute("DELETE FROM lance.main.trips WHERE id IN (FROM keys); INSERT INTO lance.main.trips VALUES (1, 'new')")
    con.execute("COMMIT")
    assert con.execute("SELECT city FROM trips WHERE id = 1").fetchall() == [("new",)]
