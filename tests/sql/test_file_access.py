"""DuckDB's file access settings apply to Lance tables: paths outside the connected folders are not accessible."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

needs_2 = pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1 hides all objects of Python")

OUTSIDE = [
    "FROM '{out}/t.lance'",
    "SELECT id FROM '{out}/t.lance' WHERE id = 3",
    "FROM '{out}/t.lance' AT (VERSION => 1)",
    "FROM 'file://{out}/t.lance'",
    "FROM '{in}/../out/t.lance'",
    "FROM '{in}/t.lance/../../out/t.lance'",
    "FROM '{in}/link/t.lance'",
    "FROM '{in}/evil.lance'",
    "FROM '{out}/missing.lance'",
    "FROM 's3://bucket/t.lance'",
    "FROM 'memory://somewhere/t.lance'",
    "SELECT rowid FROM '{out}/t.lance'",
    "SELECT match(s, 'duck') FROM '{out}/t.lance'",
    "FROM lance_scan('{out}/t.lance')",
    "FROM lance_vector_search('{out}/t.lance', 'v', [1.0, 1.0], k := 2)",
    "FROM lance_fts('{out}/t.lance', 's', 'duck', k := 3)",
    "FROM lance_hybrid_search('{out}/t.lance', 'v', [1.0, 1.0], 's', 'duck', k := 3)",
    "FROM lance_versions('{out}/t.lance')",
    "FROM lance_indexes('{out}/t.lance')",
    "FROM lance_table_changes('{out}/t.lance', 1, 2)",
    "EXPLAIN FROM '{out}/t.lance'",
    "PREPARE p AS FROM '{out}/t.lance'",
    "CREATE VIEW seen AS FROM '{out}/t.lance'",
    "COPY (FROM '{out}/t.lance') TO '{in}/copied.lance'",
    "INSERT INTO '{out}/t.lance' VALUES (1, 'x', NULL)",
    "UPDATE '{out}/t.lance' SET s = 'y'",
    "DELETE FROM '{out}/t.lance'",
    "TRUNCATE '{out}/t.lance'",
    "ALTER TABLE '{out}/t.lance' ADD COLUMN k INTEGER",
    "CREATE INDEX i ON '{out}/t.lance' (s)",
    "OPTIMIZE '{out}/t.lance'",
    "VACUUM '{out}/t.lance'",
    "DESCRIBE '{out}/t.lance'",
    "COMMENT ON TABLE '{out}/t.lance' IS 'x'",
    "DROP TABLE '{out}/t.lance'",
    "DROP TABLE IF EXISTS '{in}/../out/t.lance'",
    "CREATE TABLE '{out}/w.lance' AS SELECT 1 AS x",
    "CREATE TABLE '{out}/w.lance' (x INTEGER)",
    "CREATE TABLE IF NOT EXISTS '{out}/t.lance' (x INTEGER)",
    "CREATE OR REPLACE TABLE '{out}/t.lance' AS SELECT 1 AS x",
    "CREATE TABLE lance.made (LIKE '{out}/t.lance')",
    "COPY (SELECT 7 AS id) TO '{out}/w.lance'",
    "COPY (SELECT 7 AS id) TO '{out}/t.lance' (MODE 'append')",
    "COPY (SELECT 7 AS id) TO '{in}/link/w.lance'",
    "COPY (SELECT 7 AS id) TO ('{out}/' || 'w.lance')",
    "CALL lance_compact_files('{out}/t.lance')",
    "CALL lance_restore('{out}/t.lance', 1)",
    "CALL lance_create_tag('{out}/t.lance', 'a', 1)",
    "FROM lance_compact_files('{out}/t.lance')",
    "ATTACH '{out}' AS o (TYPE lance)",
    "ATTACH '{in}/link' AS o (TYPE lance)",
    "ATTACH '{in}/..' AS o (TYPE lance)",
    "ATTACH '{out}/new' AS o (TYPE lance)",
    "ATTACH 'db' AS o (TYPE lance, ENDPOINT 'http://localhost:1')",
    "CREATE SECRET (TYPE lance, region 'x')",
    "CREATE SECRET (TYPE lance, SCOPE 's3://bucket', region 'x')",
]
INSIDE = [
    "SELECT s FROM t WHERE id = 7",
    "SELECT count(s) FROM '{in}/t.lance' WHERE id > 3",
    "SELECT count(s) FROM 'file://{in}/t.lance'",
    "FROM lance_scan('{in}/../in/t.lance')",
    "SELECT id FROM t ORDER BY array_distance(v, [1, 1]::FLOAT[2]) LIMIT 1",
    "SELECT id FROM t WHERE match(s, '3') LIMIT 1",
    "FROM lance_vector_search('{in}/t.lance', 'v', [1.0, 1.0], k := 2)",
    "FROM lance_fts('t', 's', 'duck', k := 3)",
    "SELECT count(*) FROM t JOIN u USING (id) WHERE t.id < 5",
    "INSERT INTO t VALUES (1000, 'x', NULL) RETURNING id",
    "INSERT INTO '{in}/t.lance' SELECT id + 2000, s, v FROM u",
    "UPDATE t SET s = u.s FROM u WHERE t.id = u.id AND u.id < 3",
    "UPDATE '{in}/t.lance' SET s = 'y' WHERE id = 1",
    "DELETE FROM t USING u WHERE t.id = u.id AND u.id = 6",
    "MERGE INTO t USING u ON t.id = u.id + 500 WHEN NOT MATCHED THEN INSERT VALUES (u.id + 500, u.s, u.v)",
    "CREATE TABLE lance.w AS SELECT id FROM t",
    "CREATE TABLE '{in}/w2.lance' (x INTEGER)",
    "CREATE TABLE lance.w3 (LIKE t)",
    "COPY (SELECT 7 AS id) TO '{in}/w.lance' (MODE 'append')",
    "COPY lance.w FROM '{in}/w.lance'",
    "CREATE INDEX i ON u (id) USING BTREE",
    "ALTER TABLE u ADD COLUMN k INTEGER DEFAULT 3",
    "OPTIMIZE t",
    "CALL lance_compact_files('{in}/t.lance')",
    "DROP TABLE lance.w",
    "DROP TABLE '{in}/w2.lance'",
    "BEGIN; UPDATE t SET s = 'z' WHERE id = 2; SELECT s FROM t WHERE id = 2; COMMIT",
    "PREPARE p AS UPDATE t SET s = ? WHERE id = 3; EXECUTE p('q')",
]


def config(folder: Path) -> ld.Connection:
    return ld.connect(folder, config={"enable_external_access": "false"})


def later(folder: Path) -> ld.Connection:
    connection = ld.connect(folder)
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """Folders `in` and `out` of the same tables, and links from one to the other."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 100, pa.float32()), 2)
    rows = pa.table({"id": pa.array(range(50), pa.int32()), "s": [f"duck {i % 7}" for i in range(50)], "v": vectors})
    for path in ("in/t.lance", "in/u.lance", "out/t.lance"):
        ld.write_dataset(rows, tmp_path / path)
    os.symlink(tmp_path / "out", tmp_path / "in/link")
    os.symlink(tmp_path / "out/t.lance", tmp_path / "in/evil.lance")
    return {"in": tmp_path / "in", "out": tmp_path / "out"}


@pytest.fixture(params=[config, later])
def closed(places: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[ld.Connection]:
    with request.param(places["in"]) as connection:
        yield connection


def contents(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_statements_cannot_reach_files_outside_the_folder(places: dict[str, Path], closed: ld.Connection) -> None:
    before = contents(places["out"])
    for method in (closed.execute, closed.sql):
        for sql in OUTSIDE:
            with pytest.raises(duckdb.PermissionException, match="Cannot access file"):
                method(sql.format_map(places)).fetchall()
            assert not closed.in_transaction
    assert contents(places["out"]) == before
    assert not (places["in"] / "copied.lance").exists()


@pytest.mark.parametrize("through", ["a script", "a cursor", "DuckDB's own connection"])
def test_statements_after_disabling_external_access_are_rejected(places: dict[str, Path], through: str) -> None:
    outside, closing = f"FROM '{places['out']}/t.lance'", "SET enable_external_access = false"
    with ld.connect(places["in"]) as connection:
        assert len(connection.execute(outside).fetchall()) == 50
        script = outside
        if through == "a script":
            script = f"{outside}; {closing}; {outside}"
        elif through == "a cursor":
            connection.cursor().execute(closing)
        else:
            connection.native.execute(closing)
        with pytest.raises(duckdb.PermissionException):
            connection.execute(script)


def test_a_link_out_of_the_folder_is_not_a_table(closed: ld.Connection) -> None:
    with pytest.raises((duckdb.PermissionException, UnsupportedError), match=r"Permission Error|DuckDB 1"):
        closed.execute("FROM evil").fetchall()


@needs_2
def test_statements_inside_the_folder_work_with_restricted_access(
    places: dict[str, Path], closed: ld.Connection
) -> None:
    with ld.connect({"t": ld.dataset(places["out"] / "t.lance")}) as usual:
        expected = usual.execute("SELECT count(*), sum(id) FROM t").fetchall()
    assert closed.execute("SELECT count(*), sum(id) FROM t").fetchall() == expected
    for sql in INSIDE:
        closed.execute(sql.format_map(places)).fetchall()
    rows = closed.execute("SELECT id, s FROM t WHERE id IN (1, 2, 3, 6, 1000) ORDER BY id").fetchall()
    assert rows == [(1, "y"), (2, "z"), (3, "q"), (1000, "x")]
    assert closed.execute("SELECT count(*) FROM t").fetchall() == [(50 + 1 + 50 - 1 + 50,)]
    closed.executemany("INSERT INTO t VALUES (?, ?, NULL)", [[7000, "a"], [7001, "b"]])
    closed.append("t", pa.table({"id": pa.array([7002], pa.int32()), "s": ["c"], "v": [None]}), by_name=True)
    assert closed.sql("UPDATE t SET s = 'd' WHERE id > 6999 RETURNING id").fetchall() == [(7000,), (7001,), (7002,)]
    with closed.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE s = 'd'")
        assert cursor.execute("SELECT count(*) FROM t WHERE id >= 7000").fetchall() == [(0,)]


@needs_2
def test_allowed_directories_and_paths_are_reached(places: dict[str, Path]) -> None:
    ld.write_dataset({"id": [1]}, places["out"] / "other.lance")
    with ld.connect(places["in"]) as connection:
        connection.execute(f"SET allowed_paths = ['{places['out']}/t.lance']")
        connection.execute("SET enable_external_access = false")
        assert connection.execute(f"SELECT count(*) FROM '{places['out']}/t.lance'").fetchall() == [(50,)]
        with pytest.raises(duckdb.PermissionException):
            connection.execute(f"FROM '{places['out']}/other.lance'")
    with ld.connect() as connection:
        connection.execute(f"SET allowed_directories = ['{places['out']}']; SET enable_external_access = false")
        connection.execute(f"UPDATE '{places['out']}/other.lance' SET id = 2")
        assert connection.execute(f"FROM '{places['out']}/other.lance'").fetchall() == [(2,)]
        with pytest.raises(duckdb.PermissionException):
            connection.execute(f"FROM '{places['in']}/t.lance'")
        with pytest.raises(duckdb.InvalidInputException):
            connection.execute(f"SET allowed_directories = ['{places['in']}']")


@needs_2
def test_attached_folders_stay_accessible_until_they_are_detached(places: dict[str, Path]) -> None:
    with ld.connect(places["in"]) as connection:
        connection.execute(f"ATTACH '{places['out']}' AS o (TYPE lance); SET enable_external_access = false")
        connection.execute("UPDATE o.t SET s = 'x' WHERE id = 1; CREATE TABLE o.w AS SELECT 1 AS x")
        assert connection.execute(f"SELECT s FROM '{places['out']}/t.lance' WHERE id = 1").fetchall() == [("x",)]
        connection.execute("DETACH o")
        with pytest.raises(duckdb.PermissionException):
            connection.execute(f"FROM '{places['out']}/t.lance'")


def test_lance_functions_on_a_restricted_plain_connection_are_rejected(places: dict[str, Path]) -> None:
    with duckdb.connect(config={"enable_external_access": "false"}) as plain:
        with suppress(duckdb.PermissionException):
            ld.register(plain)
        for sql in ("FROM lance_scan('{out}/t.lance')", "FROM lance_versions('{out}/t.lance')"):
            with pytest.raises(duckdb.Error, match="Cannot access file"):
                plain.execute(sql.format_map(places))


@pytest.mark.skipif(SPEAKS_SOURCE, reason="DuckDB 2 reads them")
def test_duckdb_1_explains_why_restricted_access_blocks_lance_tables(
    closed: ld.Connection, rows: Callable[..., list[tuple[Any, ...]]]
) -> None:
    with pytest.raises(UnsupportedError, match="DuckDB 1 cannot read Lance tables with enable_external_access = false"):
        rows(closed, "SELECT s FROM t WHERE id = 3")
