"""Names are found as in a native database, whichever schema is current. A transaction does not change that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

Connect = Callable[..., ld.Connection]

TABLES = (
    "CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; CREATE TABLE t AS SELECT 7 AS a; CREATE TABLE u AS FROM t;"
    "CREATE VIEW v AS FROM t; CREATE MACRO m(x) AS x + 1; CREATE TYPE y AS INTEGER; USE lance.s;"
    "CREATE VIEW r AS FROM t"
)
READ = ("FROM t", "FROM main.t", "FROM s.t", "FROM u", "FROM v", "FROM r", "SELECT m(1)", "SELECT 1::y")
LISTED = """
    SELECT schema_name, table_name, comment FROM duckdb_tables() WHERE database_name = 'lance' UNION ALL
    SELECT schema_name, view_name, comment FROM duckdb_views() WHERE database_name = 'lance' AND NOT internal
    UNION ALL SELECT schema_name, type_name, comment FROM duckdb_types() WHERE database_name = 'lance' AND NOT internal
    ORDER BY ALL"""

AFTER_USE = [
    *("DROP VIEW v", "DROP MACRO m", "DROP TYPE y", "DROP TABLE u", "DROP VIEW u", "DROP VIEW IF EXISTS u"),
    *("ALTER VIEW v RENAME TO w", "ALTER TABLE u RENAME TO w", "ALTER TABLE u ADD COLUMN b INTEGER"),
    *("COMMENT ON TABLE u IS 'c'", "COMMENT ON VIEW v IS 'c'", "COMMENT ON TYPE y IS 'c'"),
    *("INSERT INTO u VALUES (2)", "UPDATE u SET a = 2", "DELETE FROM u", "TRUNCATE u", "DELETE FROM main.t"),
    "MERGE INTO u USING (SELECT 7 AS a) AS x ON u.a = x.a WHEN MATCHED THEN DELETE",
    *(
        "CREATE VIEW v AS SELECT 3 AS a",
        "CREATE TABLE u AS SELECT 9 AS a",
        "CREATE OR REPLACE TABLE t AS SELECT 9 AS a",
    ),
    *(
        "CREATE VIEW lance.w AS SELECT 3 AS a",
        "CREATE TABLE lance.w AS SELECT 3 AS a",
        "INSERT INTO lance.t VALUES (2)",
    ),
    *("CREATE TABLE w (a y)", "CREATE TABLE main.w AS FROM main.t", "DROP TABLE main.u"),
]
IN_TRANSACTION = [
    ["UPDATE t SET a = 8", "CREATE TABLE main.w AS FROM main.t"],
    ["CREATE TABLE u AS SELECT 5 AS a", "ALTER TABLE main.u RENAME TO w", "DROP TABLE u"],
    ["FROM t", "DELETE FROM main.t"],
    ["UPDATE t SET a = 8", "USE lance.main", "FROM t", "DROP TABLE s.t"],
    ["UPDATE main.t SET a = 8", "FROM t", "USE lance.main", "FROM t", "INSERT INTO t VALUES (3)", "USE lance.s"],
    ["UPDATE t SET a = 8", "SELECT main.t.a FROM main.t, s.t AS x"],
    ["UPDATE t SET a = 8", "FROM v"],
    ["UPDATE t SET a = 8", "WITH t AS (SELECT 3 AS a) FROM t", "WITH x AS (FROM t) SELECT x.a, t.a FROM x, t"],
    ["UPDATE t SET a = 8", "SELECT t.a FROM t AS t, (FROM t) AS x WHERE t.a IN (SELECT t.a FROM t)", "SUMMARIZE t"],
    ["INSERT INTO u SELECT a FROM t", "CREATE TABLE u AS FROM t", "INSERT INTO u SELECT a FROM main.u", "FROM main.u"],
]
READ_BESIDE = [
    "UPDATE t SET a = (SELECT max(a) FROM v)",
    "DELETE FROM t USING v WHERE t.a <> v.a",
    "INSERT INTO t SELECT a FROM v UNION ALL SELECT t.a FROM t JOIN r USING (a)",
    "INSERT INTO t WITH t AS (SELECT 3 AS a) FROM t",
    "MERGE INTO t USING v ON t.a = v.a WHEN NOT MATCHED THEN INSERT",
    "UPDATE main.t SET a = (SELECT max(a) FROM r)",
    "DELETE FROM main.t WHERE a IN (SELECT a + 6 FROM r) AND a IN (SELECT a FROM main.t)",
]
"""Changes that read views of a table in another schema, which has the name of the changed table."""


def answers(con: Any, statements: list[str]) -> list[Any]:
    """Return the rows of each query, and whether other statements raise an error."""
    answered: list[Any] = []
    for statement in statements:
        try:
            result = con.execute(statement)
            answered.append(sorted(result.fetchall()) if statement.startswith(("FROM", "SELECT")) else "done")
        except Exception:
            answered.append("refused")
    return answered


@pytest.mark.parametrize(
    "statements", [[each] for each in AFTER_USE + READ_BESIDE] + [["BEGIN", *each, "COMMIT"] for each in IN_TRANSACTION]
)
def test_names_after_use_mean_what_they_mean_in_a_native_database(
    tmp_path: Path, connect: Connect, statements: list[str]
) -> None:
    native, con = duckdb.connect(tmp_path / "lance.db"), connect(tmp_path / "folder")
    native.execute(TABLES)
    con.execute(TABLES)
    expected = answers(native, [*statements, *READ])
    assert answers(con, [*statements, *READ]) == expected
    listed = native.execute(LISTED).fetchall()
    assert con.execute(LISTED).fetchall() == listed
    again = connect(tmp_path / "folder")
    assert again.execute(LISTED).fetchall() == listed
    again.execute("USE lance.s")
    native.close()
    native = duckdb.connect(tmp_path / "lance.db")
    native.execute("USE lance.s")
    assert answers(again, [*READ]) == answers(native, [*READ])


def test_duckdb_2_refuses_a_view_of_the_changed_table_if_another_schema_has_a_table_of_this_name(
    con: ld.Connection,
) -> None:
    con.execute(TABLES)
    con.execute("BEGIN; UPDATE t SET a = 8")
    if duckdb.__version__ < "2":
        assert con.execute("FROM r").fetchall() == [(8,)]
        return
    with pytest.raises(UnsupportedError, match="a view or a prepared statement reads a Lance table that changed"):
        con.execute("FROM r")


@pytest.mark.parametrize("source", ["v", "w", "m()", "s.v"])
def test_a_view_is_read_at_the_version_of_the_transaction(
    con: ld.Connection, tmp_path: Path, connect: Connect, source: str
) -> None:
    con.execute("CREATE TABLE q AS SELECT 1 AS a; CREATE VIEW v AS FROM q; CREATE VIEW w AS FROM V")
    con.execute("CREATE MACRO m() AS TABLE FROM w; CREATE SCHEMA s; CREATE VIEW s.v AS FROM main.q")
    con.execute("BEGIN")
    assert con.execute(f"FROM {source}").fetchall() == [(1,)]
    connect(tmp_path).execute("INSERT INTO q VALUES (2)")
    assert con.execute(f"FROM {source}").fetchall() == con.execute("FROM q").fetchall() == [(1,)]
    con.execute("COMMIT")
    assert sorted(con.execute(f"FROM {source}").fetchall()) == [(1,), (2,)]


def test_names_fold_only_ascii_letters(con: ld.Connection) -> None:
    con.execute('CREATE TABLE "Ü" AS SELECT 1 AS a; INSERT INTO "Ü" VALUES (2); UPDATE "Ü" SET a = a + 1')
    con.execute('BEGIN; DELETE FROM "Ü" WHERE a = 2; COMMIT; ALTER TABLE "Ü" ADD COLUMN b INTEGER')
    assert con.execute('FROM "Ü"').fetchall() == [(3, None)]
    con.execute('DROP TABLE "Ü"')


def test_a_table_is_created_in_main_if_the_current_schema_was_dropped(con: ld.Connection) -> None:
    con.execute("CREATE SCHEMA s; USE s; DROP SCHEMA s CASCADE; CREATE TABLE t AS SELECT 1 AS a")
    assert con.execute("FROM lance.main.t").fetchall() == [(1,)]


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    return connect(tmp_path)
