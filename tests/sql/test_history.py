"""What versions, files and settings of a table are, as relations; and the procedures about versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)

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
def test_each_function_has_columns_of_exact_types(
    con: ld.Connection, plain: duckdb.DuckDBPyConnection, folder: Path, name: str, rows: Rows
) -> None:
    def columns(connection: Any, sql: str) -> str:
        return ", ".join(f"{row[0]} {row[1]}" for row in rows(connection, f"DESCRIBE FROM {sql}"))

    assert columns(con, f"lance_{name}('trips')") == COLUMNS[name]
    assert columns(con, f"lance.{name}('trips')") == COLUMNS[name]
    assert columns(con, f'"LANCE".main."{name}"(\'{folder}/trips.lance\')') == COLUMNS[name]
    assert columns(plain, f"lance_{name}('{folder}/trips.lance')") == COLUMNS[name]


def test_versions_say_what_each_did(con: ld.Connection, rows: Rows) -> None:
    sql = "SELECT version, operation, rows, fragments, files, tags, message FROM lance_versions('trips')"
    assert rows(con, sql) == [
        (1, "Overwrite", 5, 1, 1, [], None),
        (2, "Append", 8, 2, 2, ["second"], None),
        (3, "Delete", 7, 2, 2, [], None),
    ]
    assert rows(con, "SELECT bool_and(bytes > 0 AND timestamp <= now()) FROM lance_versions('trips')") == [(True,)]


def test_functions_compose_as_relations(con: ld.Connection, rows: Rows) -> None:
    sql = """
        SELECT v.version FROM lance_versions('trips') AS v JOIN lance.tags('trips') AS t USING (version)
        WHERE v.rows > ? AND v.operation LIKE 'App%'"""
    assert rows(con, sql, [5]) == [(2,)]
    assert rows(con, "SELECT count(*) FROM lance_versions('trips') WHERE version BETWEEN 2 AND 3") == [(2,)]
    con.execute("CREATE VIEW v AS SELECT max(version) FROM lance_versions('trips')")
    con.execute("DELETE FROM trips WHERE id = 0")
    assert rows(con, "FROM v") == [(4,)]
    con.execute("CREATE TABLE kept AS FROM lance.fragments('lance.trips')")
    assert rows(con, "SELECT rows, deleted_rows FROM kept") == [(4, 1), (2, 1)]
    con.execute("CREATE TABLE lance.log AS SELECT version, operation FROM lance_versions('trips')")
    assert rows(con, "SELECT max(version) FROM log") == [(4,)]


def test_a_view_of_a_database_file_finds_the_functions_again(folder: Path, rows: Rows) -> None:
    file = folder / "views.duckdb"
    with ld.connect(folder, file) as con:
        con.execute("CREATE VIEW v AS SELECT count(*) FROM lance_versions('trips')")
    with ld.connect(folder, file) as con:
        assert rows(con, "FROM v") == [(3,)]


def test_functions_are_known_in_transactions_and_after_them(con: ld.Connection, rows: Rows) -> None:
    count = "SELECT count(*) FROM lance_versions('trips')"
    con.begin()
    assert rows(con, count) == [(3,)]
    con.rollback()
    assert rows(con, count) == [(3,)]
    assert rows(con.cursor(), count) == [(3,)]
    later = con.sql(count)
    assert con.sql("SELECT count(*) FROM lance_tags('trips')").fetchall() == [(1,)]
    assert later.fetchall() == [(3,)]


def test_fragments_and_files_of_a_version(con: ld.Connection, folder: Path, rows: Rows) -> None:
    assert rows(con, "SELECT * EXCLUDE (bytes, deletion_file) FROM lance_fragments('trips')") == [
        (0, 5, 0, 5, 1), (1, 2, 1, 3, 1)
    ]  # fmt: skip
    assert rows(con, "SELECT count(*) FROM lance_fragments('trips', version := 1)") == [(1,)]
    sql = "SELECT fragment_id, kind, rows, columns FROM lance_files('trips') ORDER BY ALL"
    columns = ["id", "city"]
    assert rows(con, sql) == [(0, "data", 5, columns), (1, "data", 3, columns), (1, "deletion", 1, None)]
    for base, path, size in rows(con, "SELECT base, path, bytes FROM lance_files('trips', tag := 'second')"):
        assert (Path(base) / path).stat().st_size == size


def test_indexes_and_settings(con: ld.Connection, folder: Path, rows: Rows) -> None:
    table = ld.dataset(folder / "trips.lance")
    table.create_scalar_index("city", "BTREE", name="by_city")
    table.update_config({"some.key": "1"})
    con.execute("INSERT INTO trips VALUES (9, 'q')")
    sql = "SELECT index_name, fields, rows_indexed FROM lance_indexes('trips')"
    assert rows(con, sql) == [("by_city", "city", 7)]
    assert rows(con, "SELECT index_name FROM lance.indices('trips', version := 3)") == []
    assert rows(con, "FROM lance.config('trips') WHERE key = 'some.key'") == [("some.key", "1")]
    assert rows(con, "FROM lance_config('trips', version := 1) WHERE key = 'some.key'") == []
    sql = "SELECT version, rows, deleted_rows, fragments, indexes, stable_row_ids FROM lance_info('trips')"
    assert rows(con, sql) == [(6, 8, 1, 3, ["by_city"], False)]
    sql = "SELECT version, latest_version, tags, rows FROM lance_info('trips', tag := 'second')"
    assert rows(con, sql) == [(2, 6, ["second"], 8)]


def test_branches_have_versions_of_their_own(con: ld.Connection, folder: Path, rows: Rows) -> None:
    con.execute("CALL lance_create_branch('trips', 'dev', version => 'second')")
    ld.dataset(folder / "trips.lance", version=("dev", None)).delete("id = 0")
    sql = "SELECT branch, parent_branch, parent_version, latest_version FROM lance_branches('trips')"
    assert rows(con, sql) == [("main", None, None, 3), ("dev", "main", 2, 3)]
    sql = "SELECT version, operation, rows FROM lance_versions('trips', branch := 'dev')"
    assert rows(con, sql) == [(2, "Clone", 8), (3, "Delete", 7)]
    assert rows(con, "SELECT branch, rows FROM lance_info('trips', version := 'dev')") == [("dev", 7)]


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("FROM lance_versions(NULL)", InvalidInputError, "lance_versions without a table"),
        ("FROM lance_versions('nope.lance')", NotFoundError, "nope.lance"),
        ("FROM lance_files('trips', version := 9)", NotFoundError, "no version 9: expected one of 1 to 3"),
        ("FROM lance_info('trips', version := 1, tag := 'second')", InvalidInputError, "one of version, tag and asof"),
        ("FROM lance_versions('trips', branch := 'x')", NotFoundError, "no branch 'x'"),
    ],
)
def test_tables_and_versions_that_are_not_there_are_refused(
    con: ld.Connection, sql: str, kind: Any, message: str
) -> None:
    with pytest.raises(kind, match=message):
        con.execute(sql)


def test_names_of_others_are_left_alone(con: ld.Connection, rows: Rows) -> None:
    con.execute("CREATE SCHEMA s")
    con.execute("CREATE MACRO s.versions(x) AS TABLE SELECT x + 1 AS y")
    assert rows(con, "FROM s.versions(1)") == [(2,)]
    assert rows(con, "SELECT {'files': 1}.files, t.config FROM (SELECT 3 AS config) AS t") == [(1, 3)]


def test_a_commit_message_is_kept_with_the_version(con: ld.Connection, folder: Path, rows: Rows) -> None:
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


def test_a_commit_message_needs_a_transaction(con: ld.Connection) -> None:
    with pytest.raises(InvalidInputError, match="outside a transaction; BEGIN first"):
        con.execute("CALL lance_set_commit_message('ann', 'x')")
    with pytest.raises(InvalidInputError, match="no argument 'message'"):
        con.execute("CALL lance_set_commit_message('ann')")


@pytest.mark.parametrize("version", ["1", "'first'", "?"])
def test_restore_makes_the_table_what_it_was(con: ld.Connection, rows: Rows, version: str) -> None:
    con.execute("CALL lance_create_tag('trips', 'first', 1)")
    assert rows(con, f"CALL lance_restore('trips', {version})", [1] if version == "?" else None) == [(4,)]
    assert rows(con, "SELECT count(*) FROM trips") == [(5,)]
    assert rows(con, "SELECT operation FROM lance_versions('trips') WHERE version = 4") == [("Restore",)]


def test_tags_and_branches_come_and_go(con: ld.Connection, rows: Rows) -> None:
    con.execute("CALL lance_create_tag('trips', 'a')")
    con.execute("CALL lance.create_tag('trips', 'b', version => 1)")
    con.execute("CALL lance_update_tag('trips', 'b', version => 'second')")
    con.execute("CALL lance_delete_tag('lance.trips', 'second')")
    assert rows(con, "SELECT tag, version FROM lance_tags('trips')") == [("a", 3), ("b", 2)]
    con.execute("CALL lance_create_branch('trips', 'dev')")
    con.execute("CALL lance_create_tag('trips', 'on_dev', version => 'dev')")
    assert rows(con, "SELECT branch FROM lance_tags('trips') WHERE tag = 'on_dev'") == [("dev",)]
    con.execute("CALL lance_delete_tag('trips', 'on_dev')")
    con.execute("CALL lance_delete_branch('trips', 'dev')")
    assert rows(con, "SELECT branch FROM lance_branches('trips')") == [("main",)]


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("CALL lance_restore('trips', 9)", NotFoundError, "no version 9: expected one of 1 to 3"),
        ("CALL lance_restore('trips', NULL)", InvalidInputError, "without a version"),
        ("CALL lance_create_tag('trips', 'second')", AlreadyExistsError, "second"),
        ("CALL lance_delete_tag('trips', 'nope')", NotFoundError, "nope"),
        ("CALL lance_create_tag('trips', NULL)", InvalidInputError, "without a tag"),
        ("CALL lance_create_branch('trips', 'x', version => 'nope')", NotFoundError, "no version, tag or branch"),
    ],
)
def test_procedures_that_cannot_be_carried_out_are_refused(
    con: ld.Connection, sql: str, kind: Any, message: str
) -> None:
    with pytest.raises(kind, match=message):
        con.execute(sql)


def test_versions_of_other_branches_are_not_restored(con: ld.Connection) -> None:
    con.execute("CALL lance_create_branch('trips', 'dev')")
    with pytest.raises(InvalidInputError, match="a version of another branch: expected one of main, found dev"):
        con.execute("CALL lance_restore('trips', 'dev')")


def test_restore_and_references_are_refused_in_transactions_and_on_read_only_connections(
    con: ld.Connection, folder: Path
) -> None:
    con.begin()
    with pytest.raises(UnsupportedError, match="in a transaction"):
        con.execute("CALL lance_restore('trips', 1)")
    con.rollback()
    with ld.connect(folder, read_only=True) as reader, pytest.raises(UnsupportedError, match="read-only"):
        reader.execute("CALL lance_create_tag('trips', 'x')")


def test_tables_of_attached_folders_are_found_by_their_database(
    con: ld.Connection, tmp_path_factory: pytest.TempPathFactory, rows: Rows
) -> None:
    place = tmp_path_factory.mktemp("more")
    ld.write_dataset(pa.table({"x": [1]}), place / "trips.lance")
    con.execute(f"ATTACH '{place}' AS more (TYPE lance)")
    assert rows(con, "SELECT rows FROM more.versions('trips')") == [(1,)]
    assert rows(con, "SELECT rows FROM lance_info('more.trips')") == [(1,)]
    assert rows(con, "SELECT rows FROM lance.info('trips')") == [(7,)]
    con.execute("CALL more.create_tag('trips', 'only')")
    assert rows(con, "SELECT tag FROM lance_tags('trips', database := 'more')") == [("only",)]


def test_moments_of_versions_are_fetched_with_their_zone(con: ld.Connection, rows: Rows) -> None:
    moments = [row[0] for row in rows(con, "SELECT timestamp FROM lance_versions('trips') ORDER BY version")]
    assert len(moments) == 3
    assert moments == sorted(moments)
    assert all(moment.tzinfo is not None for moment in moments)


def test_a_transaction_sees_no_versions_that_others_make_meanwhile(con: ld.Connection, folder: Path) -> None:
    numbers = "SELECT list(version ORDER BY version) FROM lance_versions('trips')"
    con.execute("BEGIN")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    lance.dataset(folder / "trips.lance").delete("id = 1")
    assert con.execute(numbers).fetchall() == [([1, 2, 3],)]
    con.execute("DELETE FROM trips WHERE id = 0")
    assert con.execute(numbers).fetchall() == [([1, 2, 3],)]
    assert con.execute("SELECT count(*) FROM trips AT (VERSION => 4)").fetchall() == [(6,)]
    con.execute("COMMIT")
    assert con.execute(numbers).fetchall() == [([1, 2, 3, 4, 5],)]
