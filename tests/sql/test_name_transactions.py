"""Statements that change names in a transaction: tables, schemas, views, macros and types."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest
from support.faults import Crash, Faults, Plan, fail_at, lose_answer, stop_at

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CorruptError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    StoreError,
    UnsupportedError,
)
from lance_duck.groups.finish import settle

Connect = Callable[..., ld.Connection]


def rows(con: Any, sql: str) -> list[Any]:
    return sorted(con.execute(sql).fetchall())


def folders(root: Path) -> list[str]:
    """Return `__manifest` and the folders of tables. Staged files of finished commits are removed."""
    assert not list(root.glob("__lance_duck/staged/*"))
    return sorted(path.name for path in root.iterdir() if path.name != "__lance_duck")


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    con = connect(tmp_path)
    con.execute("CREATE TABLE t AS SELECT 1 AS a")
    return con


@pytest.fixture
def in_schema(con: ld.Connection) -> ld.Connection:
    con.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a")
    return con


SWAP = (
    "CREATE TABLE {s}t__tmp AS SELECT 2 AS a; INSERT INTO {s}t__tmp VALUES (3); UPDATE {s}t__tmp SET a = 4 WHERE a = 3;"
    "ALTER TABLE {s}t RENAME TO t__old; ALTER TABLE {s}t__tmp RENAME TO t; DROP TABLE {s}t__old"
)


@pytest.mark.parametrize("schema", ["", "s."])
def test_a_table_is_swapped_at_commit(in_schema: ld.Connection, tmp_path: Path, connect: Connect, schema: str) -> None:
    con, cursor, other = in_schema, in_schema.cursor(), connect(tmp_path)
    con.execute("BEGIN")
    con.execute(SWAP.format(s=schema))
    assert rows(con, f"FROM {schema}t") == [(2,), (4,)]
    assert rows(cursor, f"FROM {schema}t") == rows(other, f"FROM {schema}t") == [(1,)]
    with pytest.raises(duckdb.CatalogException):
        cursor.execute(f"FROM {schema}t__tmp")
    con.execute("COMMIT")
    for each in (con, cursor, other, connect(tmp_path)):
        assert rows(each, f"FROM {schema}t") == [(2,), (4,)]
    assert len(folders(tmp_path)) == 3


@pytest.mark.parametrize("schema", ["", "s."])
def test_rollback_leaves_nothing(in_schema: ld.Connection, tmp_path: Path, schema: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    in_schema.execute("BEGIN")
    in_schema.execute(SWAP.format(s=schema))
    in_schema.execute(
        "CREATE VIEW v AS SELECT 1; CREATE MACRO m() AS 1; CREATE SCHEMA n; CREATE TABLE n.x AS SELECT 1; ROLLBACK"
    )
    assert sorted(tmp_path.rglob("*")) == before
    assert rows(in_schema, f"FROM {schema}t") == [(1,)]
    assert len(rows(in_schema, "SHOW ALL TABLES")) == 2
    with pytest.raises(duckdb.CatalogException):
        in_schema.execute("SELECT m()")


def test_a_failed_transaction_leaves_nothing(con: ld.Connection, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    con.execute("BEGIN; CREATE TABLE made AS SELECT 1 AS a")
    with pytest.raises(duckdb.Error):
        con.execute("SELECT error('no')").fetchall()
    if duckdb.__version__.startswith("2"):
        with pytest.raises(InvalidInputError, match="nothing was committed"):
            con.execute("COMMIT")
    else:
        con.execute("ROLLBACK")
    assert sorted(tmp_path.rglob("*")) == before


def test_schemas_tables_views_and_rows_of_one_table_are_committed(
    con: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    con.execute("BEGIN; CREATE SCHEMA s; CREATE TABLE s.x(i INTEGER); INSERT INTO s.x VALUES (1), (2)")
    con.execute(
        "ALTER TABLE s.x ADD COLUMN b INTEGER DEFAULT 4; CREATE VIEW v AS FROM s.x; COMMENT ON VIEW v IS 'mine'"
    )
    con.execute("CREATE MACRO m() AS 5; CREATE TYPE y AS ENUM ('p'); INSERT INTO t VALUES (9)")
    assert rows(con, "SELECT *, m(), 'p'::y FROM v") == [(1, 4, 5, "p"), (2, 4, 5, "p")]
    assert rows(con, "FROM t") == [(1,), (9,)]
    con.execute("COMMIT")
    other = connect(tmp_path)
    assert rows(other, "SELECT *, m(), 'p'::y FROM v") == [(1, 4, 5, "p"), (2, 4, 5, "p")]
    assert rows(other, "FROM t") == [(1,), (9,)]
    assert rows(other, "SELECT comment FROM duckdb_views() WHERE view_name = 'v'") == [("mine",)]


def test_names_are_changed_again_in_one_transaction(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    con.execute(
        "BEGIN; CREATE TABLE x AS SELECT 1 AS a; DROP TABLE x; CREATE TABLE x AS SELECT 2 AS b; CREATE VIEW v AS FROM x"
    )
    con.execute(
        "CREATE OR REPLACE VIEW v AS SELECT b + 1 AS c FROM x; ALTER VIEW v RENAME TO w;"
        "CREATE VIEW z AS SELECT 1; DROP VIEW z"
    )
    con.execute("DROP TABLE t; CREATE TABLE t AS SELECT 7 AS d; COMMIT")
    for each in (con, connect(tmp_path)):
        assert rows(each, "SHOW TABLES") == [("t",), ("w",), ("x",)]
        assert rows(each, "FROM w") == [(3,)]
        assert rows(each, "FROM t") == [(7,)]


@pytest.mark.parametrize("schema", ["", "s."])
def test_a_table_is_changed_and_renamed_in_one_transaction(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, schema: str
) -> None:
    con, cursor = in_schema, in_schema.cursor()
    con.execute(
        f"BEGIN; INSERT INTO {schema}t VALUES (2); ALTER TABLE {schema}t RENAME TO u; INSERT INTO {schema}u VALUES (3)"
    )
    con.execute(f"ALTER TABLE {schema}u ADD COLUMN b INTEGER DEFAULT 7; ALTER TABLE {schema}u RENAME TO w")
    assert rows(con, f"FROM {schema}w") == [(1, 7), (2, 7), (3, 7)]
    assert rows(cursor, f"FROM {schema}t") == [(1,)]
    with pytest.raises(duckdb.CatalogException):
        connect(tmp_path).execute(f"FROM {schema}u")
    con.execute("COMMIT")
    for each in (con, cursor, connect(tmp_path)):
        assert rows(each, f"FROM {schema}w") == [(1, 7), (2, 7), (3, 7)]


def test_a_changed_table_is_dropped_in_its_transaction(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("BEGIN; INSERT INTO t VALUES (2); COMMENT ON TABLE t IS 'gone'; DROP TABLE t; COMMIT")
    assert folders(tmp_path) == []
    assert rows(con, "SHOW TABLES") == []


@pytest.mark.parametrize(
    ("mine", "theirs", "words"),
    [
        (
            "CREATE TABLE c AS SELECT 1 AS a",
            "CREATE TABLE c AS SELECT 2 AS a",
            'create table "c".*has been created by another',
        ),
        ("DROP TABLE t", "DROP TABLE t", 'alter table "t".*has been dropped by another'),
        (
            "ALTER TABLE t RENAME TO u",
            "CREATE TABLE u AS SELECT 2 AS a",
            'create table "u".*has been created by another',
        ),
        ("CREATE TABLE s.c AS SELECT 1 AS a", "CREATE TABLE s.c AS SELECT 2 AS a", 'create table "c" in schema "s"'),
        ("DROP TABLE s.t", "DROP TABLE s.t", 'alter table "t" in schema "s"'),
        ("CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 2", "another writer has created the view"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 2", "another writer has created the view"),
        ("CREATE VIEW v AS SELECT 1", "CREATE TABLE v AS SELECT 2 AS a", "a table of this name exists"),
        ("CREATE TABLE v AS SELECT 2 AS a", "CREATE VIEW v AS SELECT 1", 'create table "v"'),
        ("CREATE VIEW s.v AS SELECT 1", "CREATE TABLE s.v AS SELECT 2 AS a", "a table of this name exists"),
        ("CREATE TABLE s.v AS SELECT 2 AS a", "CREATE VIEW s.v AS SELECT 1", "a view of this name exists"),
        ("CREATE SCHEMA n", "CREATE SCHEMA n", "another writer"),
        ("CREATE SCHEMA n", "CREATE SCHEMA N", "N: another writer"),
        ("CREATE MACRO m() AS 1", "CREATE MACRO m() AS 2", "another writer has created the macro"),
        ("ALTER VIEW w RENAME TO w2", "DROP VIEW w", "another writer has dropped the view"),
        ("DROP VIEW w", "CREATE OR REPLACE VIEW w AS SELECT 5", "another writer has changed the view"),
        ("COMMENT ON VIEW w IS 'x'", "CREATE OR REPLACE VIEW w AS SELECT 5", "another writer has changed the view"),
        ("DROP TABLE t", "DROP TABLE t; CREATE TABLE t AS SELECT 99 AS a", '"t".*has been replaced'),
        ("ALTER TABLE t RENAME TO u", "DROP TABLE t; CREATE TABLE t AS SELECT 99 AS a", '"t".*has been replaced'),
        ("DROP TABLE s.t", "DROP TABLE s.t; CREATE TABLE s.t AS SELECT 99 AS a", '"t".*has been replaced'),
        ("ALTER TABLE s.t RENAME TO u", "DROP TABLE s.t; CREATE TABLE s.t AS SELECT 99 AS a", '"t".*has been replaced'),
        ("DROP TABLE t", "INSERT INTO t VALUES (99)", 'drop table "t".*has been changed'),
        ("DROP TABLE s.t", "INSERT INTO s.t VALUES (99)", 'drop table "t".*has been changed'),
        ("ALTER TABLE s.t RENAME TO u; DROP TABLE s.u", "DELETE FROM s.t", 'drop table "t".*has been changed'),
        ("DROP SCHEMA s CASCADE", "INSERT INTO s.t VALUES (99)", 'drop table "t".*has been changed'),
        ("DROP SCHEMA s CASCADE", "CREATE TABLE s.n AS SELECT 99 AS a", 'created "n" in the schema "s"'),
        ("DROP SCHEMA s CASCADE", "CREATE VIEW s.n AS SELECT 99 AS a", 'created "n" in the schema "s"'),
    ],
)
def test_names_that_others_changed_are_conflicts(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, mine: str, theirs: str, words: str
) -> None:
    other = connect(tmp_path)
    in_schema.execute("CREATE VIEW w AS SELECT 3; CREATE TABLE kept AS SELECT 1 AS a")
    in_schema.execute(f"BEGIN; {mine}; INSERT INTO kept VALUES (5)")
    other.execute(theirs)
    before = state(other)
    with pytest.raises(CommitConflictError, match=words):
        in_schema.execute("COMMIT")
    assert state(in_schema) == state(other) == before
    assert rows(other, "FROM kept") == [(1,)]


def state(con: ld.Connection) -> list[Any]:
    """Return the rows of all tables and views, and the schemas."""
    names = rows(con, "SELECT schema, name FROM (SHOW ALL TABLES)")
    return [(s, n, rows(con, f"FROM {s}.{n}")) for s, n in names] + rows(
        con, "FROM duckdb_schemas() SELECT schema_name"
    )


def test_a_renamed_table_keeps_rows_that_others_added(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    in_schema.execute("BEGIN; INSERT INTO t VALUES (2); ALTER TABLE t RENAME TO u; ALTER TABLE s.t RENAME TO v")
    connect(tmp_path).execute("INSERT INTO t VALUES (3); INSERT INTO s.t VALUES (3)")
    in_schema.execute("COMMIT")
    for each in (in_schema, connect(tmp_path)):
        assert rows(each, "FROM u") == [(1,), (2,), (3,)]
        assert rows(each, "FROM s.v") == [(1,), (3,)]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("CREATE VIEW x AS SELECT 1; DROP VIEW x; CREATE TABLE x AS SELECT 7 AS a", "main.t main.w main.x s.t"),
        ("DROP TABLE s.t; DROP SCHEMA s; CREATE SCHEMA s; CREATE VIEW s.y AS SELECT 7 AS a", "main.t main.w s.y"),
        ("UPDATE s.t SET a = 5; CREATE TABLE s.n AS SELECT 1 AS a; DROP SCHEMA s CASCADE", "main.t main.w"),
        ("DROP VIEW w; CREATE TABLE w AS SELECT 7 AS a", "main.t main.w s.t"),
        ("DROP TABLE t; CREATE VIEW t AS SELECT 7 AS a", "main.t main.w s.t"),
        ("DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 7 AS a", "main.t main.w s.t"),
    ],
)
def test_a_name_is_used_again_in_one_transaction(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, sql: str, names: str
) -> None:
    in_schema.execute(f"CREATE VIEW w AS SELECT 3 AS a; BEGIN; {sql}; COMMIT")
    for each in (in_schema, connect(tmp_path)):
        assert [f"{schema}.{name}" for schema, name in names_of(each)] == names.split()
        values = [row for schema, name in names_of(each) for row in rows(each, f"FROM {schema}.{name}")]
        assert ((7,) in values) == ("7" in sql)


def test_drop_schema_sees_the_tables_of_the_transaction(in_schema: ld.Connection) -> None:
    for statements in ("CREATE SCHEMA n; CREATE TABLE n.x AS SELECT 1 AS a; DROP SCHEMA n", "DROP SCHEMA s"):
        with pytest.raises(ReferencedError, match="entries that depend on it"):
            in_schema.execute(f"BEGIN; {statements}")
        in_schema.execute("ROLLBACK")
    in_schema.execute("BEGIN; DROP TABLE s.t; DROP SCHEMA s; COMMIT")
    assert names_of(in_schema) == [("main", "t")]


def names_of(con: ld.Connection) -> list[Any]:
    """Return the tables and views that the connection sees, with their schemas."""
    return rows(con, "SELECT schema, name FROM (SHOW ALL TABLES)")


def test_a_newer_form_of_the_catalog_is_refused_before_rows_are_committed(
    in_schema: ld.Connection, tmp_path: Path
) -> None:
    in_schema.execute("BEGIN; INSERT INTO t VALUES (7); CREATE VIEW v AS SELECT 1")
    ld.dataset(tmp_path / "__manifest").update_config({"lance_duck.catalog": "2"})
    with pytest.raises(UnsupportedError, match="form 2"):
        in_schema.execute("COMMIT")
    assert rows(in_schema, "FROM t") == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE t",
        "CREATE SCHEMA q",
        "DROP SCHEMA s CASCADE",
        "UPDATE t SET a = 3; COMMENT ON TABLE t IS 'x'; ALTER TABLE t ADD COLUMN b INTEGER; ALTER TABLE t RENAME TO u",
        "ALTER TABLE s.t RENAME TO u",
    ],
)
def test_commit_keeps_temporary_objects_and_shows_macros_and_types(in_schema: ld.Connection, sql: str) -> None:
    con, cursor = in_schema, in_schema.cursor()
    con.execute("CREATE TEMP TABLE k(a INTEGER); CREATE MACRO m(a) AS a + 1; CREATE MACRO old() AS 1")
    con.execute(
        "CREATE VIEW w AS SELECT 1 AS a; BEGIN; INSERT INTO k VALUES (5); CREATE TEMP TABLE k2 AS SELECT 6 AS a"
    )
    con.execute("SET VARIABLE v = 3; CREATE OR REPLACE MACRO m(a) AS a + 10; CREATE MACRO r() AS TABLE SELECT 8 AS a")
    con.execute(f"CREATE TYPE y AS ENUM ('p'); COMMENT ON VIEW w IS 'seen'; DROP MACRO old; {sql}; COMMIT")
    assert rows(con, "SELECT k.a, k2.a, getvariable('v') FROM k, k2") == [(5, 6, 3)]
    for each in (con, cursor):
        assert rows(each, "SELECT m(1), a, 'p'::y FROM r()") == [(11, 8, "p")]
        assert rows(each, "SELECT comment FROM duckdb_views() WHERE view_name = 'w'") == [("seen",)]
        with pytest.raises(duckdb.CatalogException):
            each.execute("SELECT old()")


def test_interrupted_commit_keeps_the_tables_that_are_published(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    in_schema.execute("BEGIN; CREATE TABLE s.k AS SELECT 3 AS a; CREATE TABLE r AS SELECT 4 AS a; DROP TABLE s.t")
    with monkeypatch.context() as patched:
        patched.setattr(ld.DirectoryNamespace, "discard", interrupt)
        with pytest.raises(KeyboardInterrupt):
            in_schema.execute("COMMIT")
    for each in (in_schema, connect(tmp_path)):
        assert names_of(each) == [("main", "r"), ("main", "t"), ("s", "k")]
        assert rows(each, "FROM s.k") == [(3,)]
        assert rows(each, "FROM r") == [(4,)]


CHANGES = {
    "main": "INSERT INTO u VALUES (2); CREATE TABLE made AS SELECT 2 AS a; CREATE VIEW v AS FROM made;"
    "ALTER TABLE t RENAME TO old; CREATE TABLE t AS SELECT 3 AS a; DROP TABLE x",
    "s": "INSERT INTO u VALUES (2); CREATE TABLE s.made AS SELECT 2 AS a; ALTER TABLE s.t RENAME TO old;DROP TABLE s.x",
}
SOME = [pytest.param(25, id="some steps"), pytest.param(4, id="more steps", marks=pytest.mark.slow)]


class Folders:
    """Copies of one folder, each changed by the same transaction, with a fault in its COMMIT.

    Attributes:
        before: What connections see before the transaction.
        after: What they see after it.
        steps: The steps of the COMMIT that change files.
    """

    def __init__(self, root: Path, sql: str) -> None:
        self._root, self._sql = root, sql
        with ld.connect(root / "first") as con:
            con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE u AS SELECT 1 AS a; CREATE TABLE x AS FROM t")
            con.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 1 AS a; CREATE TABLE s.x AS FROM s.t")
            self.before = state(con)
        with Faults() as seen:
            folder, error = self.copy("all", seen)
        assert error is None
        self.steps = seen.steps
        with ld.connect(folder) as con:
            self.after = state(con)
        assert self.after != self.before

    def copy(self, name: str, faults: Faults) -> tuple[Path, BaseException | None]:
        """Run the transaction on a copy. Returns its folder, and the error of COMMIT."""
        folder = Path(shutil.copytree(self._root / "first", self._root / name))
        with ld.connect(folder) as con:
            con.execute(f"BEGIN; {self._sql}")
            try:
                with faults:
                    faults.steps.clear()
                    con.execute("COMMIT")
            except (Crash, LanceDuckError, KeyboardInterrupt) as error:
                if not faults.dead:
                    rows(con, "FROM u")  # finishes the commit
                    assert state(con) in (self.before, self.after)
                return folder, error
        return folder, None


def interrupt_at(at: int) -> Plan:
    """Press Ctrl-C before step `at`."""

    def plan(faults: Faults, now: int, name: str, do: Callable[[], Any]) -> Any:
        if now == at:
            raise KeyboardInterrupt
        return do()

    return plan


@pytest.mark.parametrize("every", SOME)
@pytest.mark.parametrize("fault", ["end", "error", "lost answer", "interrupt"])
@pytest.mark.parametrize("schema", CHANGES)
def test_a_fault_at_any_step_of_a_commit_leaves_all_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schema: str, fault: str, every: int
) -> None:
    monkeypatch.setattr(settle, "__kwdefaults__", {"wait": 0})
    plans: dict[str, Callable[[int], Plan]] = {
        "end": stop_at,
        "error": lambda at: fail_at(at, errno.EIO),
        "lost answer": lose_answer,
        "interrupt": interrupt_at,
    }
    folders = Folders(tmp_path, CHANGES[schema])
    entry = next(number for number, step in enumerate(folders.steps) if re.search(r"link .*/commits/\d*\.json$", step))
    for at in sorted({*range(len(folders.steps) % every, len(folders.steps), every), entry, entry + 1}):
        folder, error = folders.copy(f"{at}", Faults(plans[fault](at)))
        is_decided = at > entry or (fault == "lost answer" and at == entry)
        with ld.connect(folder) as fresh:
            assert state(fresh) == (folders.after if error is None or is_decided else folders.before), folders.steps[at]
            fresh.execute("CREATE TABLE next AS SELECT 1 AS a; BEGIN; INSERT INTO next VALUES (2); DELETE FROM u")
            fresh.execute("COMMIT")
            assert (rows(fresh, "FROM next"), rows(fresh, "FROM u")) == ([(1,), (2,)], [])
        if isinstance(error, StoreError) and "the commit is decided" in str(error):
            assert is_decided
        assert not [each for each in ld.DirectoryNamespace(str(folder)).find_problems() if each.is_damage]


def test_two_connections_of_one_process_conflict_at_the_statement(con: ld.Connection) -> None:
    cursor = con.cursor()
    con.execute("BEGIN; CREATE TABLE c AS SELECT 1 AS a")
    cursor.execute("BEGIN")
    with pytest.raises(duckdb.TransactionException, match="conflict"):
        cursor.execute("CREATE TABLE c AS SELECT 2 AS a")
    cursor.execute("ROLLBACK")
    con.execute("COMMIT")
    assert rows(cursor, "FROM c") == [(1,)]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("CREATE OR REPLACE TABLE t AS SELECT 2 AS a", "DROP TABLE first in the same transaction"),
        ("CREATE TABLE 'x.lance' AS SELECT 1 AS a", "in a transaction"),
        ("CREATE INDEX i ON t USING BTREE (a)", "in a transaction"),
        ("OPTIMIZE t", "in a transaction"),
    ],
)
def test_what_a_transaction_cannot_hold_is_refused(con: ld.Connection, sql: str, words: str) -> None:
    con.execute("CREATE TABLE other AS SELECT 1 AS a; BEGIN")
    with pytest.raises(UnsupportedError, match=words):
        con.execute(sql)
    con.execute("ROLLBACK")
    assert rows(con, "FROM t") == rows(con, "FROM other") == [(1,)]


def test_new_tables_of_dead_processes_are_removed_after_a_week(con: ld.Connection, tmp_path: Path) -> None:
    old, new = (tmp_path / "__lance_duck" / "staged" / name for name in ("old", "new"))
    for path in (old, new):
        ld.write_dataset({"a": [1]}, path)
    os.utime(old, (0, 0))
    con.execute("BEGIN; CREATE TABLE made AS SELECT 2 AS a; COMMIT")
    assert [path.name for path in (tmp_path / "__lance_duck" / "staged").iterdir()] == ["new"]
    assert rows(con, "SHOW TABLES") == [("made",), ("t",)]


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("CREATE VIEW v AS SELECT 1 AS a", "CREATE VIEW v AS SELECT 2 AS a"),
        ("CREATE TABLE v AS SELECT 1 AS a", "CREATE TABLE v AS SELECT 2 AS a"),
        ("CREATE SCHEMA n", "CREATE SCHEMA n; CREATE VIEW v AS SELECT 2 AS a"),
        ("DROP SCHEMA s CASCADE", "DROP SCHEMA s CASCADE; CREATE VIEW v AS SELECT 2 AS a"),
        ("DROP TABLE t", "DROP TABLE t; CREATE VIEW v AS SELECT 2 AS a"),
        ("ALTER TABLE t RENAME TO u", "DROP TABLE t; CREATE VIEW v AS SELECT 2 AS a"),
        ("DROP TABLE s.t", "ALTER TABLE s.t RENAME TO u; CREATE VIEW v AS SELECT 2 AS a"),
        ("CREATE TABLE s.n AS SELECT 1 AS a", "DROP SCHEMA s CASCADE; CREATE VIEW v AS SELECT 2 AS a"),
        ("CREATE MACRO m() AS 1", "CREATE MACRO m() AS 2; CREATE VIEW v AS SELECT m() AS a"),
    ],
)
def test_statements_of_others_run_while_a_transaction_holds_names(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, mine: str, theirs: str
) -> None:
    cursor, other = in_schema.cursor(), connect(tmp_path)
    in_schema.execute(f"CREATE TABLE kept AS SELECT 1 AS a; BEGIN; {mine}")
    other.execute(theirs)
    for each in (cursor, in_schema):
        assert rows(each, "FROM kept") == [(1,)]
    cursor.execute("SHOW ALL TABLES; FROM duckdb_columns()")
    in_schema.execute("ROLLBACK")
    assert names_of(cursor) == names_of(in_schema) == names_of(connect(tmp_path))
    assert rows(cursor, "FROM v") == rows(in_schema, "FROM v") == rows(connect(tmp_path), "FROM v") == [(2,)]


@pytest.mark.parametrize("frame", ["{}", "BEGIN; {}; COMMIT"])
@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DROP TABLE T", ["s.t"]),
        ("DROP TABLE IF EXISTS T", ["s.t"]),
        ("DROP TABLE S.T", ["main.t"]),
        ("ALTER TABLE T RENAME TO u", ["main.u", "s.t"]),
        ("ALTER TABLE S.T RENAME TO u", ["main.t", "s.u"]),
        ("CREATE TABLE x AS SELECT 2 AS a; DROP TABLE T; CREATE TABLE t AS FROM X; DROP TABLE X", ["main.t", "s.t"]),
        ("DROP TABLE T; CREATE TABLE T AS SELECT 2 AS a; ALTER TABLE t RENAME TO U; DROP TABLE u", ["s.t"]),
        ("ALTER TABLE S.T RENAME TO U; ALTER TABLE s.u RENAME TO w; CREATE TABLE s.t(a INTEGER); DROP TABLE s.W", None),
    ],
)
def test_names_are_dropped_and_renamed_without_case(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, frame: str, sql: str, tables: list[str] | None
) -> None:
    in_schema.execute(frame.format(sql))
    for each in (in_schema, connect(tmp_path)):
        names = rows(each, "SELECT table_schema || '.' || table_name FROM information_schema.tables")
        assert [name for (name,) in names] == (tables or ["main.t", "s.t"])
    assert len(folders(tmp_path)) == 1 + len(names)


@pytest.mark.parametrize("frame", ["{}", "BEGIN; {}; COMMIT"])
@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("ALTER TABLE R RENAME TO u", {"t": "t.lance", "u": "elsewhere"}),
        ("ALTER TABLE r RENAME TO u; ALTER TABLE u RENAME TO w", {"t": "t.lance", "w": "elsewhere"}),
        ("ALTER TABLE r RENAME TO u; ALTER TABLE t RENAME TO r; DROP TABLE u", {"r": "r.lance"}),
        ("DROP TABLE R; CREATE TABLE r AS SELECT 2 AS a", {"r": "r.lance", "t": "t.lance"}),
    ],
)
def test_registered_tables_keep_their_folders(
    con: ld.Connection, tmp_path: Path, connect: Connect, frame: str, sql: str, tables: dict[str, str]
) -> None:
    ld.write_dataset({"a": [2]}, tmp_path / "elsewhere")
    namespace = ld.connect_namespace("dir", {"root": str(tmp_path)})
    namespace.register_table("r", "elsewhere")
    con.execute(frame.format(sql))
    for each in (con, connect(tmp_path)):
        assert [name for (name,) in rows(each, "SHOW TABLES")] == sorted(tables)
    places = namespace.describe_tables()
    assert {name: place.location.rpartition("/")[2] for name, place in places.items()} == tables
    assert folders(tmp_path) == ["__manifest", *sorted(tables.values())]


@pytest.mark.parametrize("begin", ["", "BEGIN; "])
@pytest.mark.parametrize("sql", ["t RENAME TO v", "t RENAME TO V", "s.t RENAME TO V"])
def test_a_table_cannot_get_the_name_of_a_view(in_schema: ld.Connection, tmp_path: Path, begin: str, sql: str) -> None:
    in_schema.execute("CREATE VIEW v AS SELECT 5 AS z; CREATE VIEW s.v AS SELECT 5 AS z")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(AlreadyExistsError, match=r'View with name "[vV]" already exists!'):
        in_schema.execute(f"{begin}ALTER TABLE {sql}")
    if begin:
        in_schema.execute("ROLLBACK")
    assert sorted(tmp_path.rglob("*")) == before
    assert rows(in_schema, "FROM v") == rows(in_schema, "FROM s.v") == [(5,)]


@pytest.mark.parametrize("frame", ["{}", "BEGIN; {}; COMMIT"])
@pytest.mark.parametrize("schema", ["main", "s"])
@pytest.mark.parametrize("names", [("t", "t"), ("T", "T"), ("T", "t"), ("T", "t", "U", "u", "u")])
def test_a_table_is_renamed_to_its_own_name(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, frame: str, schema: str, names: tuple[str, ...]
) -> None:
    sql = [f"ALTER TABLE {schema}.{old} RENAME TO {new}" for old, new in zip(("t", *names), names, strict=False)]
    in_schema.execute(frame.format("; ".join([*sql, f"INSERT INTO {schema}.{names[-1]} VALUES (2)"])))
    for each in (in_schema, connect(tmp_path)):
        assert rows(each, f"SELECT table_name FROM duckdb_tables() WHERE schema_name = '{schema}'") == [(names[-1],)]
        assert rows(each, f"FROM {schema}.{names[-1]}") == [(1,), (2,)]
    assert len(folders(tmp_path)) == 3


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DROP TABLE s.t; DROP SCHEMA s", []),
        ("DROP TABLE S.T; DROP SCHEMA S CASCADE", []),
        ("ALTER TABLE s.t RENAME TO u; DROP TABLE s.U; DROP SCHEMA s", []),
        ("CREATE VIEW s.v AS FROM s.t; DROP VIEW s.v; DROP TABLE s.t; DROP SCHEMA s; CREATE SCHEMA S", []),
        ("DROP TABLE s.t; CREATE OR REPLACE SCHEMA s; CREATE TABLE s.t AS SELECT 2 AS a", ["t"]),
        ("CREATE TABLE s.u AS FROM s.t; DROP SCHEMA s CASCADE; CREATE SCHEMA s; CREATE TABLE s.u(a INTEGER)", ["u"]),
        ("CREATE SCHEMA n; CREATE TABLE n.t AS FROM s.t; DROP TABLE n.t; DROP SCHEMA n", ["t"]),
    ],
)
def test_a_schema_is_dropped_with_the_names_that_the_transaction_sees(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, sql: str, tables: list[str]
) -> None:
    in_schema.execute(f"BEGIN; {sql}; COMMIT")
    for each in (in_schema, connect(tmp_path)):
        names = [row[1:3] for row in rows(each, "SHOW ALL TABLES")]
        assert names == [("main", "t"), *(("s", table) for table in tables)]
    assert len(folders(tmp_path)) == 2 + len(tables)


@pytest.mark.parametrize("sql", ["TABLE s.n(a INTEGER)", "VIEW s.n AS SELECT 1", "MACRO s.n() AS 1"])
def test_a_schema_with_new_names_is_not_dropped(in_schema: ld.Connection, sql: str) -> None:
    in_schema.execute(f"BEGIN; DROP TABLE s.t; CREATE {sql}")
    with pytest.raises(ReferencedError, match=r'Cannot drop entry "s".*found n;'):
        in_schema.execute("DROP SCHEMA s")
    in_schema.execute("ROLLBACK")
    assert rows(in_schema, "FROM s.t") == [(1,)]


@pytest.mark.parametrize("name", ["n", "N", "lance.n", "s.n", "new.n", "u"])
def test_frames_and_relations_are_appended_to_new_names(in_schema: ld.Connection, name: str) -> None:
    in_schema.execute("BEGIN; CREATE TABLE n(a INTEGER); CREATE TABLE s.n(a INTEGER); DELETE FROM t")
    in_schema.execute("CREATE SCHEMA new; CREATE TABLE new.n(a INTEGER); ALTER TABLE t RENAME TO u")
    in_schema.append(name, pd.DataFrame({"a": [1]}))
    in_schema.append(name, pa.table({"a": [2]}), by_name=True)
    in_schema.sql("SELECT 3 AS a").insert_into(name)
    if duckdb.__version__.startswith("2"):
        with pytest.raises(UnsupportedError, match="appender is not supported on a Lance table"):
            in_schema.appender(name)
    in_schema.execute("COMMIT")
    assert rows(in_schema, f"FROM {name}") == [(1,), (2,), (3,)]


def test_a_name_of_an_open_transaction_is_read_after_its_end(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    cursor, other = in_schema.cursor(), connect(tmp_path)
    in_schema.execute("BEGIN; CREATE TABLE n AS SELECT 1 AS a; CREATE TABLE damaged AS SELECT 1 AS a")
    other.execute("CREATE TABLE n AS SELECT 2 AS a")
    (tmp_path / "damaged.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "damaged.lance" / "_versions" / "1.manifest").write_bytes(b"damaged")
    assert rows(cursor, "FROM t") == rows(in_schema, "FROM n") == [(1,)]
    with pytest.raises(UnsupportedError, match="n: an open transaction of this process uses the name"):
        cursor.execute("FROM n")
    in_schema.execute("ROLLBACK")
    assert rows(cursor, "FROM n") == rows(in_schema, "FROM n") == [(2,)]
    with pytest.raises(CorruptError):
        cursor.execute("FROM damaged")


@pytest.mark.parametrize("frame", ["{}", "BEGIN; {}; COMMIT"])
def test_the_row_of_a_table_of_main_follows_its_folder(tmp_path: Path, connect: Connect, frame: str) -> None:
    namespace = ld.connect_namespace("dir", {"root": str(tmp_path)})
    namespace.create_namespace("s")
    namespace.create_table("r", {"a": [1]})
    con = connect(tmp_path)
    con.execute("CREATE VIEW v AS SELECT 2 AS a")
    con.execute(frame.format("DROP VIEW v; ALTER TABLE R RENAME TO v; CREATE VIEW r AS SELECT 3 AS a"))
    for each in (con, connect(tmp_path)):
        assert (rows(each, "FROM v"), rows(each, "FROM r")) == ([(1,)], [(3,)])
    assert namespace.list_tables() == ["v"]
    assert folders(tmp_path) == ["__manifest", "v.lance"]


@pytest.mark.parametrize("name", ["t", "s.t", "v"])
def test_a_table_that_was_dropped_meanwhile_is_not_found(
    in_schema: ld.Connection, tmp_path: Path, connect: Connect, name: str
) -> None:
    in_schema.execute("CREATE VIEW v AS FROM t; BEGIN")
    assert rows(in_schema, f"FROM {name}") == [(1,)]
    connect(tmp_path).execute("DROP TABLE t; DROP TABLE s.t")
    with pytest.raises(NotFoundError):
        in_schema.execute(f"FROM {name}")
