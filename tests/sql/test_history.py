"""Columns, files and branches of the functions about versions; `statements/lance/history.sql` has the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_duck as ld

Rows = Callable[..., list[tuple[Any, ...]]]

COLUMNS = {
    "versions": "version BIGINT, timestamp TIMESTAMP WITH TIME ZONE, operation VARCHAR, tags VARCHAR[], rows BIGINT, "
    "fragments BIGINT, files BIGINT, bytes BIGINT, author VARCHAR, message VARCHAR, properties MAP(VARCHAR, VARCHAR), "
    "writer VARCHAR",
    "tags": "tag VARCHAR, version BIGINT, branch VARCHAR, created_at TIMESTAMP WITH TIME ZONE, "
    "updated_at TIMESTAMP WITH TIME ZONE",
    "branches": "branch VARCHAR, parent_branch VARCHAR, parent_version BIGINT, latest_version BIGINT, "
    "created_at TIMESTAMP WITH TIME ZONE",
    "fragments": "fragment_id BIGINT, rows BIGINT, deleted_rows BIGINT, physical_rows BIGINT, files BIGINT, "
    "bytes BIGINT, deletion_file VARCHAR",
    "files": "fragment_id BIGINT, kind VARCHAR, path VARCHAR, base VARCHAR, rows BIGINT, bytes BIGINT, "
    "file_version VARCHAR, columns VARCHAR[]",
    "indexes": "index_name VARCHAR, index_type VARCHAR, fields VARCHAR, rows_indexed UBIGINT, details VARCHAR",
    "config": "Key VARCHAR, Value VARCHAR",
    "info": "uri VARCHAR, branch VARCHAR, version BIGINT, latest_version BIGINT, timestamp TIMESTAMP WITH TIME ZONE, "
    "tags VARCHAR[], columns BIGINT, rows BIGINT, deleted_rows BIGINT, fragments BIGINT, files BIGINT, bytes BIGINT, "
    "indexes VARCHAR[], storage_version VARCHAR, stable_row_ids BOOLEAN, reader_flags VARCHAR[], "
    "writer_flags VARCHAR[], writer VARCHAR",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_each_function_has_exact_column_types(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, folder: Path, name: str, rows: Rows
) -> None:
    def columns(connection: Any, sql: str) -> str:
        return ", ".join(f"{row[0]} {row[1]}" for row in rows(connection, f"DESCRIBE FROM {sql}"))

    assert columns(con, f"lance_{name}('trips')") == COLUMNS[name]
    assert columns(con, f"lance.{name}('trips')") == COLUMNS[name]
    assert columns(con, f'"LANCE".main."{name}"(\'{folder}/trips.lance\')') == COLUMNS[name]
    assert columns(plain, f"lance_{name}('{folder}/trips.lance')") == COLUMNS[name]


def test_a_view_of_a_database_file_finds_the_functions_again(folder: Path, rows: Rows) -> None:
    file = folder / "views.duckdb"
    with ld.connect(folder, file) as con:
        con.execute("CREATE VIEW v AS SELECT count(*) FROM lance_versions('trips')")
    with ld.connect(folder, file) as con:
        assert rows(con, "FROM v") == [(3,)]


def test_table_functions_work_inside_and_after_transactions(con: ld.Connection, rows: Rows) -> None:
    count = "SELECT count(*) FROM lance_versions('trips')"
    con.begin()
    assert rows(con, count) == [(3,)]
    con.rollback()
    assert rows(con, count) == [(3,)]
    assert rows(con.cursor(), count) == [(3,)]
    later = con.sql(count)
    assert con.sql("SELECT count(*) FROM lance_tags('trips')").fetchall() == [(1,)]
    assert later.fetchall() == [(3,)]


def test_files_of_a_version(con: ld.Connection, folder: Path, rows: Rows) -> None:
    sql = "SELECT fragment_id, kind, rows, columns FROM lance_files('trips') ORDER BY ALL"
    columns = ["id", "city"]
    assert rows(con, sql) == [(0, "data", 5, columns), (1, "data", 3, columns), (1, "deletion", 1, None)]
    for base, path, size in rows(con, "SELECT base, path, bytes FROM lance_files('trips', tag := 'second')"):
        assert (Path(base) / path).stat().st_size == size


def test_history_functions_read_branches(con: ld.Connection, folder: Path, rows: Rows) -> None:
    con.execute("CALL lance_create_branch('trips', 'dev', version => 'second')")
    ld.dataset(folder / "trips.lance", version=("dev", None)).delete("id = 0")
    sql = "SELECT branch, parent_branch, parent_version, latest_version FROM lance_branches('trips')"
    assert rows(con, sql) == [("main", None, None, 3), ("dev", "main", 2, 3)]
    sql = "SELECT version, operation, rows FROM lance_versions('trips', branch := 'dev')"
    assert rows(con, sql) == [(2, "Clone", 8), (3, "Delete", 7)]
    assert rows(con, "SELECT branch, rows FROM lance_info('trips', version := 'dev')") == [("dev", 7)]


def test_a_commit_message_is_stored_with_the_version(con: ld.Connection, folder: Path, rows: Rows) -> None:
    con.begin()
    con.execute("INSERT INTO trips VALUES (20, 'n')")
    con.execute("CALL lance.set_commit_message('ann', ?, extra_info => '{\"a\": 1}')", ["new trips"])
    con.execute("DELETE FROM trips WHERE id = 0")
    con.commit()
    sql = "SELECT author, message, properties['extra_info'] FROM lance_versions('trips') WHERE version = 4"
    assert rows(con, sql) == [("ann", "new trips", '{"a": 1}')]
    transaction = lance.dataset(folder / "trips.lance").read_transaction(4)
    assert transaction.transaction_properties["__lance_commit_message"] == "new trips"
    assert transaction.transaction_properties["author"] == "ann"
    con.execute("DELETE FROM trips WHERE id = 1")
    assert rows(con, "SELECT author, message FROM lance_versions('trips') WHERE version = 5") == [(None, None)]


def test_version_timestamps_are_timezone_aware(con: ld.Connection, rows: Rows) -> None:
    moments = [row[0] for row in rows(con, "SELECT timestamp FROM lance_versions('trips') ORDER BY version")]
    assert len(moments) == 3
    assert moments == sorted(moments)
    assert all(moment.tzinfo is not None for moment in moments)
