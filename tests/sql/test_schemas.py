"""Schemas of a Lance database are namespaces of its folder, which pylance and LanceDB see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance_namespace
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
)

Connect = Callable[..., ld.Connection]


def rows(con: Any, sql: str) -> list[Any]:
    return sorted(con.execute(sql).fetchall())


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    """The tables main.q and s.q."""
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT 1 AS a; CREATE SCHEMA s; CREATE TABLE s.q AS SELECT 2 AS a, 'x' AS b")
    return con


def test_other_libraries_see_a_schema_as_a_namespace(con: ld.Connection, tmp_path: Path) -> None:
    theirs = lance_namespace.connect("dir", {"root": str(tmp_path)})
    listed = theirs.list_tables(lance_namespace.ListTablesRequest(id=["s"]))
    assert set(listed.tables) == {"q"}
    theirs.create_namespace(lance_namespace.CreateNamespaceRequest(id=["theirs"]))
    con.execute("CREATE TABLE theirs.t AS SELECT 3 AS a")
    assert rows(con, "FROM lance.theirs.t") == [(3,)]


@pytest.mark.parametrize("name", ["s.q", "lance.s.q", '"s"."q"', "S.Q", "LANCE.S.Q"])
def test_statements_reach_a_table_by_its_schema(con: ld.Connection, tmp_path: Path, name: str) -> None:
    con.execute(
        f"INSERT INTO {name} VALUES (3, 'y'); UPDATE {name} SET b = 'z' WHERE a = 3; DELETE FROM {name} WHERE a = 2"
    )
    assert rows(con, f"FROM {name}") == rows(con, f"SELECT q.* FROM {name} AS q") == [(3, "z")]
    con.execute(f"MERGE INTO {name} AS t USING (SELECT 3 AS a) AS u ON t.a = u.a WHEN MATCHED THEN UPDATE SET b = 'm'")
    con.execute(f"ALTER TABLE {name} ADD COLUMN c INTEGER; COMMENT ON TABLE {name} IS 'mine'")
    con.execute(f"CREATE INDEX i ON {name} USING BTREE (a)")
    assert rows(con, f"FROM {name} WHERE a = 3") == [(3, "m", None)]
    assert rows(con, f"FROM {name} AT (VERSION => 1)") == [(2, "x")]
    assert rows(con, f"SELECT a FROM lance_scan('{name}')") == [(3,)]
    assert len(rows(con, f"FROM lance_versions('{name}')")) == 8
    assert rows(con, "FROM q") == [(1,)]
    assert [folder.name[-4:] for folder in tmp_path.iterdir() if folder.name.endswith("s$q")] == ["_s$q"]


def test_use_changes_the_schema_of_unqualified_names(con: ld.Connection) -> None:
    con.execute("USE s")
    assert rows(con, "SELECT a FROM q") == [(2,)]
    assert rows(con, "SELECT current_database(), current_schema()") == [("lance", "s")]
    con.execute("CREATE TABLE made AS FROM main.q; USE lance")
    assert rows(con, "FROM s.made") == rows(con, "FROM q") == [(1,)]
    con.execute("SET schema = 's'")
    assert rows(con, "SELECT a FROM q") == [(2,)]


def test_a_transaction_changes_the_table_of_one_schema(con: ld.Connection) -> None:
    con.execute("BEGIN; INSERT INTO s.q VALUES (3, 'y')")
    assert rows(con, "SELECT a FROM s.q") == [(2,), (3,)]
    assert rows(con, "SELECT a FROM main.q") == rows(con, "SELECT a FROM q") == [(1,)]
    con.execute("ROLLBACK")
    assert rows(con, "SELECT a FROM s.q") == [(2,)]


def test_tables_of_a_schema_are_renamed_by_their_rows(con: ld.Connection, tmp_path: Path) -> None:
    folders = sorted(path.name for path in tmp_path.iterdir())
    con.execute("ALTER TABLE s.q RENAME TO r")
    assert rows(con, "SELECT a FROM s.r") == [(2,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == folders
    with pytest.raises(duckdb.CatalogException, match="q does not exist"):
        con.execute("SELECT a FROM s.q")


def test_an_existing_schema(con: ld.Connection) -> None:
    with pytest.raises(AlreadyExistsError, match='Schema with name "S" already exists!'):
        con.execute("CREATE SCHEMA S")
    con.execute("CREATE SCHEMA IF NOT EXISTS s")
    with pytest.raises(ReferencedError, match='Cannot drop entry "s" because there are entries that depend on it'):
        con.execute("CREATE OR REPLACE SCHEMA s")
    assert rows(con, "SELECT a FROM s.q") == [(2,)]


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("CREATE SCHEMA main", AlreadyExistsError, "already exists"),
        ('CREATE SCHEMA "a$b"', InvalidInputError, r"ASCII letters.*'a\$b'"),
        ('CREATE SCHEMA "ü"', InvalidInputError, "ASCII letters"),
        ('CREATE TABLE s."ü"(a INTEGER)', InvalidInputError, "ASCII letters"),
        ("CREATE TABLE lance.nosuch.t(a INTEGER)", NotFoundError, "Schema with name nosuch does not exist!"),
        ("DROP SCHEMA s", ReferencedError, 'Cannot drop entry "s" because there are entries that depend on it'),
        ("DROP SCHEMA main", UnsupportedError, "internal system entry"),
        ("DROP SCHEMA nosuch", NotFoundError, "Schema with name nosuch does not exist!"),
        ("CREATE SEQUENCE s.n", UnsupportedError, "CREATE SEQUENCE is not supported"),
    ],
)
def test_refusals_change_nothing(con: ld.Connection, sql: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        con.execute(sql)
    assert rows(con, "SELECT table_schema, table_name FROM information_schema.tables") == [("main", "q"), ("s", "q")]


def test_drop_schema_cascade_removes_tables_and_files(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    other = connect(tmp_path)
    assert rows(other, "SELECT a FROM s.q") == [(2,)]
    con.execute("CREATE VIEW s.v AS FROM s.q; DROP SCHEMA s CASCADE; DROP SCHEMA IF EXISTS s")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__manifest", "q.lance"]
    with pytest.raises(duckdb.CatalogException, match="s"):
        other.execute("SELECT a FROM s.q")
    assert rows(other, "FROM q") == [(1,)]


def test_another_process_adds_and_removes_schemas(con: ld.Connection, tmp_path: Path) -> None:
    namespace = ld.connect_namespace("dir", {"root": str(tmp_path)})
    namespace.create_namespace("later")
    namespace.create_table("later$t", {"a": [5]})
    assert rows(con, "FROM later.t") == [(5,)]
    namespace.drop_table("later$t")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM later.t")
    namespace.drop_namespace("later")
    assert rows(con, "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lance'") == [
        ("main",),
        ("s",),
    ]


def test_a_plain_folder_stays_plain(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT 1 AS a; CREATE TABLE r AS FROM q; DROP TABLE r")
    assert [path.name for path in tmp_path.iterdir()] == ["q.lance"]


def test_schemas_of_an_attached_folder(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    other = connect()
    other.execute(f"ATTACH '{tmp_path}' AS d (TYPE lance)")
    assert rows(other, "SELECT a FROM d.s.q") == [(2,)]
    other.execute("CREATE SCHEMA d.t; CREATE TABLE d.t.made AS FROM d.s.q; USE d.t")
    assert rows(other, "SELECT a FROM made") == rows(con, "SELECT a FROM t.made") == [(2,)]
    other.execute("USE memory; DETACH d")
    with pytest.raises(duckdb.Error):
        other.execute("FROM d.s.q")


def test_a_read_only_attachment_rejects_schemas(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    other = connect()
    other.execute(f"ATTACH '{tmp_path}' AS d (TYPE lance, READ_ONLY)")
    for sql in (
        "CREATE SCHEMA d.t",
        "DROP SCHEMA d.s CASCADE",
        "CREATE TABLE d.s.t(a INTEGER)",
        "CREATE VIEW d.v AS SELECT 1",
    ):
        with pytest.raises(UnsupportedError, match="READ_ONLY"):
            other.execute(sql)


def test_a_damaged_manifest_does_not_hide_tables(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    for path in (tmp_path / "__manifest" / "_versions").iterdir():
        path.write_bytes(b"damaged")
    with pytest.warns(UserWarning, match="schemas, views, macros and types are not listed"):
        other = connect(tmp_path)
    assert rows(other, "FROM q") == [(1,)]
    with pytest.raises(LanceDuckError, match="__manifest"):
        other.execute("CREATE VIEW v AS FROM q")
    assert rows(other, "SHOW TABLES") == [("q",)]


def test_a_table_of_a_schema_whose_name_ends_like_a_folder(
    con: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    theirs = lance_namespace.connect("dir", {"root": str(tmp_path)})
    place = theirs.declare_table(lance_namespace.DeclareTableRequest(id=["s", "p.lance"])).location
    ld.write_dataset({"a": [5]}, place)
    con.execute('CREATE TABLE s."x.lance" AS SELECT 3 AS a')
    con.execute('BEGIN; CREATE TABLE s."Y.lance" AS SELECT 4 AS a; COMMIT')
    tables = [("main", "q"), ("s", "Y.lance"), ("s", "p.lance"), ("s", "q"), ("s", "x.lance")]
    for each in (con, connect(tmp_path)):
        assert rows(each, "SELECT table_schema, table_name FROM information_schema.tables") == tables
    assert rows(con, 'FROM s."x.lance" UNION FROM s."Y.lance" UNION FROM s."p.lance"') == [(3,), (4,), (5,)]
    described = theirs.describe_table(lance_namespace.DescribeTableRequest(id=["s", "x.lance"]))
    assert ld.dataset(str(described.location)).count_rows() == 1
    con.execute("DROP SCHEMA s CASCADE")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["__manifest", "q.lance"]
    assert set(theirs.list_tables(lance_namespace.ListTablesRequest(id=[])).tables) == {"q"}
