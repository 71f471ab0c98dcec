"""DuckDB lists the current columns of Lance tables, whoever changed them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

import lance_duck as ld
from lance_duck.duck.databases.database_schema import DatabaseSchema

DUCKDB = (
    "SELECT column_name FROM duckdb_columns() WHERE database_name = '{}' AND table_name = 't' ORDER BY column_index"
)
STANDARD = """
SELECT column_name FROM "information_schema" . "columns"
WHERE table_catalog = '{}' AND table_name = 't' ORDER BY ordinal_position
"""
LISTS = {
    "duckdb_columns": DUCKDB,
    "information_schema": STANDARD,
    "in upper case": DUCKDB.replace("duckdb_columns", "DUCKDB_COLUMNS"),
    "show all tables": "SELECT unnest(column_names) FROM (SHOW  ALL\nTABLES) WHERE database = '{}' AND name = 't'",
    "pg_attribute": """
        SELECT attname FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
        WHERE relname = 't' AND '{}' <> '' ORDER BY attnum
    """,
    "describe": "SELECT column_name FROM (DESCRIBE {}.t)",
    "pragma": "SELECT name FROM pragma_table_info('{}.main.t')",
}


@pytest.fixture
def con(tmp_path: Path) -> ld.Connection:
    ld.write_dataset({"a": [1]}, tmp_path / "t.lance")
    return ld.connect(tmp_path)


def names(con: ld.Connection, what: str = "duckdb_columns", database: str = "lance") -> list[str]:
    return [row[0] for row in con.execute(LISTS[what].format(database)).fetchall()]


def in_python(change: Callable[[ld.LanceDataset], object]) -> Callable[[ld.Connection, str], object]:
    return lambda con, uri: change(ld.dataset(uri))


def in_sql(sql: str) -> Callable[[ld.Connection, str], object]:
    return lambda con, uri: con.execute(sql)


def elsewhere(sql: str) -> Callable[[ld.Connection, str], object]:
    def change(con: ld.Connection, uri: str) -> None:
        with ld.connect(Path(uri).parent) as other:
            other.execute(sql)

    return change


CHANGES = {
    "create or replace": (in_sql("CREATE OR REPLACE TABLE lance.t AS SELECT 'x' AS b, 2 AS c"), ["b", "c"]),
    "drop and create": (in_sql("DROP TABLE lance.t; CREATE TABLE lance.t (b INTEGER, c DATE)"), ["b", "c"]),
    "add column": (in_sql("ALTER TABLE t ADD COLUMN b INTEGER"), ["a", "b"]),
    "rename column": (in_sql("ALTER TABLE t RENAME COLUMN a TO b"), ["b"]),
    "another connection": (elsewhere("ALTER TABLE t ADD COLUMN b INTEGER; ALTER TABLE t DROP COLUMN a"), ["b"]),
    "another replaces": (elsewhere("CREATE OR REPLACE TABLE lance.t AS SELECT 1 AS b"), ["b"]),
    "another drops": (elsewhere("DROP TABLE lance.t; CREATE TABLE lance.t (b INTEGER)"), ["b"]),
    "python": (in_python(lambda table: table.add_columns({"b": "a + 1"})), ["a", "b"]),
    "overwrite": (in_python(lambda table: ld.write_dataset({"b": [1]}, table.uri, mode="overwrite")), ["b"]),
    "copy": (
        lambda con, uri: con.execute(f"COPY (SELECT 1 AS b) TO '{uri}' (FORMAT lance, MODE 'overwrite')"),
        ["b"],
    ),
}


@pytest.mark.parametrize("what", LISTS)
@pytest.mark.parametrize("change", CHANGES)
def test_columns_are_listed_correctly_after_a_change(
    con: ld.Connection, tmp_path: Path, what: str, change: str
) -> None:
    assert names(con, what) == ["a"]
    run, expected = CHANGES[change]
    run(con, str(tmp_path / "t.lance"))
    assert names(con, what) == expected
    assert names(con.cursor(), what) == expected


def test_types_and_comments_are_listed_correctly(con: ld.Connection, tmp_path: Path) -> None:
    facts = "SELECT data_type, comment FROM duckdb_columns() WHERE table_name = 't'"
    comment = "SELECT comment FROM duckdb_tables() WHERE table_name = 't'"
    assert con.execute(facts).fetchall() == [("BIGINT", None)]
    with ld.connect(tmp_path) as other:
        other.execute("ALTER TABLE t ALTER COLUMN a TYPE INTEGER")
        other.execute("COMMENT ON COLUMN t.a IS 'first'; COMMENT ON TABLE t IS 'all'")
    assert con.execute(comment).fetchall() == [("all",)]
    assert con.execute(facts).fetchall() == [("INTEGER", "first")]
    with ld.connect(tmp_path) as other:
        other.execute("COMMENT ON COLUMN t.a IS NULL; COMMENT ON TABLE t IS NULL")
    assert con.execute(comment).fetchall() == [(None,)]
    assert con.execute(facts).fetchall() == [("INTEGER", None)]


def test_attached_tables_are_listed_correctly(con: ld.Connection, tmp_path: Path) -> None:
    con.execute(f"ATTACH '{tmp_path}' AS other (TYPE lance); ATTACH '{tmp_path}' AS first (TYPE lance, VERSION 1)")
    assert [names(con, database=name) for name in ("lance", "other", "first")] == [["a"]] * 3
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    assert [names(con, database=name) for name in ("lance", "other", "first")] == [["a", "b"], ["a", "b"], ["a"]]


def test_relations_and_prepared_statements_list_current_columns(con: ld.Connection, tmp_path: Path) -> None:
    sql = DUCKDB.format("lance")
    assert con.sql(sql).fetchall() == [("a",)]
    con.execute(f"PREPARE listed AS {sql}")
    (parsed,) = duckdb.extract_statements(sql)
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    assert con.execute("EXECUTE listed").fetchall() == [("a",), ("b",)]
    ld.dataset(tmp_path / "t.lance").add_columns({"c": "a"})
    assert con.execute(parsed).fetchall() == [("a",), ("b",), ("c",)]
    ld.dataset(tmp_path / "t.lance").add_columns({"d": "a"})
    assert con.sql(f"SELECT 1; {sql}").fetchall() == [("a",), ("b",), ("c",), ("d",)]


def test_a_table_damaged_after_listing_does_not_affect_others(con: ld.Connection, tmp_path: Path) -> None:
    ld.write_dataset({"a": [1]}, tmp_path / "u.lance")
    assert con.execute("SELECT count(*) FROM duckdb_columns() WHERE database_name = 'lance'").fetchone() == (2,)
    for manifest in (tmp_path / "u.lance" / "_versions").iterdir():
        manifest.write_bytes(b"")
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    assert names(con) == ["a", "b"]


def test_open_results_outlast_a_new_list(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("FROM t")
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    assert names(con.cursor()) == ["a", "b"]
    assert con.fetchall() == [(1,)]


def test_a_statement_that_lists_no_columns_opens_no_table(
    con: ld.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    monkeypatch.setattr(DatabaseSchema, "show_changed_columns", lambda self: pytest.fail("looked"))
    for sql in ("SELECT COLUMNS(*) FROM t", "SHOW TABLES", "FROM information_schema.tables"):
        con.execute(sql)


def test_columns_are_listed_correctly_within_a_transaction(con: ld.Connection, tmp_path: Path) -> None:
    assert names(con) == ["a"]
    ld.dataset(tmp_path / "t.lance").add_columns({"b": "a"})
    con.execute("BEGIN")
    assert names(con) == ["a", "b"]
    con.execute("INSERT INTO t VALUES (2, 3)")
    assert names(con) == ["a", "b"]
    con.execute("COMMIT")
    assert con.execute("FROM t ORDER BY a").fetchall() == [(1, 1), (2, 3)]
