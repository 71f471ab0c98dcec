"""DuckDB's file access settings apply to Lance tables: paths outside the connected folders are not accessible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.paths_support import INSIDE, OUTSIDE, contents, written_places

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

needs_2 = pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1 hides all objects of Python")


def config(folder: Path) -> ld.Connection:
    return ld.connect(folder, config={"enable_external_access": "false"})


def later(folder: Path) -> ld.Connection:
    connection = ld.connect(folder)
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    return written_places(tmp_path)


@pytest.fixture(params=[config, later])
def closed(places: dict[str, Path], request: pytest.FixtureRequest) -> Iterator[ld.Connection]:
    with request.param(places["in"]) as connection:
        yield connection


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
