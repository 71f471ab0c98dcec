"""After connect(folder), the folder is the default database: unqualified names persist."""

from __future__ import annotations

import gc
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lance
import pandas as pd
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, LanceDuckError, UnsupportedError

Connect = Callable[..., ld.Connection]


def rows(con: Any, sql: str) -> list[Any]:
    return sorted(con.execute(sql).fetchall())


def test_an_unqualified_table_is_in_the_folder_next_time(tmp_path: Path, connect: Connect) -> None:
    connect(tmp_path).execute("CREATE TABLE q AS SELECT 1 AS a")
    assert rows(connect(tmp_path), "FROM q") == rows(connect(tmp_path), "FROM lance.main.q") == [(1,)]
    assert lance.dataset(str(tmp_path / "q.lance")).to_table().to_pydict() == {"a": [1]}


@pytest.mark.parametrize("sql", ["CREATE TEMP TABLE q AS SELECT 1 AS a", "CREATE TABLE memory.q AS SELECT 1 AS a"])
def test_temporary_and_native_tables_vanish(tmp_path: Path, connect: Connect, sql: str) -> None:
    con = connect(tmp_path)
    con.execute(sql)
    assert rows(con, "FROM q") == [(1,)]
    assert not list(tmp_path.iterdir())


def test_use_memory_makes_native_tables(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("USE memory; CREATE TABLE q AS SELECT 1 AS a; USE lance")
    assert rows(con, "SELECT database_name FROM duckdb_tables()") == [("memory",)]
    assert not list(tmp_path.iterdir())


def test_a_folder_is_the_default_database_beside_a_database_file(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path / "data", database=tmp_path / "own.duckdb")
    con.execute("CREATE TABLE q AS SELECT 1 AS a; CREATE TABLE own.n AS SELECT 2 AS b")
    assert rows(con, "SELECT database_name, table_name FROM duckdb_tables()") == [("lance", "q"), ("own", "n")]
    con.close()
    with duckdb.connect(str(tmp_path / "own.duckdb")) as native:
        assert rows(native, "SHOW TABLES") == [("n",)]


def test_tables_that_were_named_stay_outside_of_the_default_database(tmp_path: Path, connect: Connect) -> None:
    connect(tmp_path).execute("CREATE TABLE q AS SELECT 1 AS a")
    con = connect({"q": tmp_path / "q.lance"})
    con.execute("CREATE TABLE made AS FROM q")
    assert rows(con, "SELECT database_name FROM duckdb_tables() WHERE table_name = 'made'") == [("memory",)]


def test_a_column_that_lance_cannot_hold_is_named(tmp_path: Path, connect: Connect) -> None:
    with pytest.raises(UnsupportedError, match="column 'e': Lance cannot store DuckDB type ENUM"):
        connect(tmp_path).execute("CREATE TABLE q AS SELECT 'x'::ENUM('x') AS e")


def test_a_read_only_connection_names_the_alternatives(tmp_path: Path, connect: Connect) -> None:
    connect(tmp_path).execute("CREATE TABLE q AS SELECT 1 AS a")
    con = connect(tmp_path, read_only=True)
    with pytest.raises(UnsupportedError, match=r"read-only.*memory\.made.*TEMP"):
        con.execute("CREATE TABLE made AS FROM q")
    con.execute("CREATE TABLE memory.made AS FROM q; CREATE TEMP TABLE temporary AS FROM q")
    assert rows(con, "FROM made JOIN temporary USING (a)") == [(1,)]


def test_a_new_lance_table_hides_a_native_table(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE memory.q AS SELECT 1 AS a")
    assert rows(con, "SELECT a FROM q") == [(1,)]
    ld.write_dataset({"a": [2]}, tmp_path / "q.lance")
    assert rows(con, "SELECT a FROM q") == [(2,)]
    assert rows(con, "SELECT a FROM memory.q") == [(1,)]


def test_lance_tables_are_listed_as_tables(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT 1 AS a, 'x' AS \"B b\"; CREATE VIEW v AS FROM q; CREATE SCHEMA s")
    con.execute("CREATE TABLE s.x AS SELECT 2 AS z; CREATE TABLE memory.n(i INTEGER)")
    assert rows(con, "SHOW TABLES") == [("n",), ("q",), ("v",)]
    listed = "SELECT table_schema, table_name, table_type FROM information_schema.tables"
    assert rows(con, listed) == [
        ("main", "n", "BASE TABLE"),
        ("main", "q", "BASE TABLE"),
        ("main", "v", "VIEW"),
        ("s", "x", "BASE TABLE"),
    ]
    assert rows(con, "SELECT view_name FROM duckdb_views() WHERE NOT internal") == [("v",)]
    assert rows(con, "SELECT column_count, sql FROM duckdb_tables() WHERE table_name = 'q'") == [
        (2, 'CREATE TABLE "q"("a" INTEGER, "B b" VARCHAR);')
    ]
    assert rows(con, "SELECT relname, relkind FROM pg_catalog.pg_class WHERE relname IN ('q', 'v')") == [
        ("q", "r"),
        ("v", "v"),
    ]
    con.execute("USE s")
    assert ("x",) in rows(con, "SELECT table_name FROM duckdb_tables()")


@pytest.mark.parametrize(
    "sql",
    [
        "RESET search_path",
        "RESET schema",
        "reset SESSION Schema",
        "SET search_path = ''",
        "SET search_path TO DEFAULT",
        "SET schema = DEFAULT",
        "PRAGMA search_path=''",
        "SELECT 1; RESET search_path",
    ],
)
@pytest.mark.parametrize("before", ["USE s", "USE memory", "SELECT 1", "BEGIN"])
def test_a_reset_of_the_search_path_returns_to_the_folder(
    tmp_path: Path, connect: Connect, sql: str, before: str
) -> None:
    con = connect(tmp_path)
    con.execute("CREATE SCHEMA s; CREATE TABLE memory.n AS SELECT 7 AS i")
    path = rows(con, "SELECT current_setting('search_path')")
    con.execute(before)
    con.execute(sql)
    con.execute("CREATE TABLE kept AS FROM n")
    if before == "BEGIN":
        con.execute("COMMIT")
    assert rows(con, "SELECT current_setting('search_path')") == path
    assert rows(con, "SELECT current_database(), current_schema()") == [("lance", "main")]
    assert rows(connect(tmp_path), "FROM kept") == [(7,)]


@pytest.mark.parametrize("run", ["sql", "execute"])
def test_a_reset_as_a_parsed_statement_returns_to_the_folder(tmp_path: Path, connect: Connect, run: str) -> None:
    con = connect(tmp_path)
    con.execute("USE memory")
    for statement in duckdb.extract_statements("RESET search_path"):
        getattr(con, run)(statement)
    assert rows(con, "SELECT current_database()") == [("lance",)]
    con.execute("USE memory")
    assert rows(con, "SELECT current_database()") == [("memory",)]


# Methods of relations.


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT 1 AS a")
    return con


@pytest.mark.parametrize("method", ["create", "to_table"])
@pytest.mark.parametrize("name", ["made", "lance.made", "lance.main.made", '"made"'])
def test_a_relation_creates_a_lance_table(con: ld.Connection, tmp_path: Path, method: str, name: str) -> None:
    getattr(con.sql("SELECT a + 1 AS b FROM q").filter("b > 0"), method)(name)
    assert lance.dataset(str(tmp_path / "made.lance")).to_table().to_pydict() == {"b": [2]}
    with pytest.raises(AlreadyExistsError):
        getattr(con.sql("FROM q"), method)(name)


def _made(tmp_path: Path) -> list[str]:
    return sorted(path.stem for path in tmp_path.glob("made*.lance"))


@pytest.mark.skipif(duckdb.__version__.startswith("1."), reason="relations of DuckDB 1 cannot keep Python objects")
def test_a_relation_keeps_its_connection_open(tmp_path: Path) -> None:
    ld.connect(str(tmp_path)).sql("SELECT 1 AS a").create("made_1")
    ld.connect(str(tmp_path)).table("made_1").to_table("made_2")
    ld.connect(str(tmp_path)).cursor().sql("SELECT 2 AS a").create("made_3")
    ld.connect(str(tmp_path)).values([3]).create("made_4")
    ld.connect(str(tmp_path)).sql("SELECT 4 AS a").query("r", "CREATE TABLE made_5 AS FROM r")
    assert ld.connect(str(tmp_path)).sql("SELECT 5 AS a").create_view("v").fetchall() == [(5,)]
    con = ld.connect(str(tmp_path))
    relation, derived = con.sql("FROM v"), con.sql("SELECT 1 AS a").filter("a = 1")
    del con
    gc.collect()
    relation.create("made_6")
    derived.create("made_7")
    assert _made(tmp_path) == [f"made_{i}" for i in range(1, 8)]
    with pytest.raises(UnsupportedError, match="read-only"):
        ld.connect(str(tmp_path), read_only=True).sql("SELECT 1 AS a").create("made_8")


@pytest.mark.skipif(not duckdb.__version__.startswith("1."), reason="relations of DuckDB 2 keep their connection")
def test_a_relation_whose_connection_is_gone_creates_nothing(tmp_path: Path) -> None:
    con = ld.connect(str(tmp_path))
    relation = con.sql("SELECT 1 AS a")
    del con
    gc.collect()
    for each in (relation, relation.filter("a = 1")):
        for create in (each.create, each.create_view, each.insert_into):
            with pytest.raises(UnsupportedError, match="the connection of this relation does not exist any more"):
                create("made")


def test_a_connection_closes_when_its_relations_are_gone(tmp_path: Path) -> None:
    con = ld.connect(str(tmp_path))
    gone = weakref.ref(con)
    relation = con.sql("SELECT 1 AS a").filter("a = 1")
    assert relation.fetchall() == [(1,)]
    del con, relation
    gc.collect()
    assert gone() is None


def test_a_relation_of_a_frame_creates_a_lance_table(con: ld.Connection, tmp_path: Path) -> None:
    con.from_df(pd.DataFrame({"b": [7, 8]})).create("framed")
    con.sql("SELECT 9 AS b").insert_into("framed")
    assert sorted(lance.dataset(str(tmp_path / "framed.lance")).to_table().to_pydict()["b"]) == [7, 8, 9]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nope", "Table with name nope does not exist!"),
        ("lance.nope", "Table with name nope does not exist!"),
        ("nope.q", 'schema "nope" does not exist'),
        ("v", "v is not an table"),
        ("V", "V is not an table"),
    ],
)
def test_rows_are_only_inserted_into_tables(con: ld.Connection, name: str, words: str) -> None:
    con.execute("CREATE VIEW v AS SELECT 1 AS b")
    with pytest.raises(duckdb.CatalogException, match=words):
        con.sql("SELECT 9 AS b").insert_into(name)


def test_a_relation_creates_a_stored_view_or_is_refused(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    relation = con.sql("SELECT 5 AS a")
    assert relation.create_view("five").fetchall() == [(5,)]
    assert rows(connect(tmp_path), "FROM five") == [(5,)]
    with pytest.raises(duckdb.CatalogException, match="already exists"):
        relation.create_view("five", replace=False)
    frame = con.from_df(pd.DataFrame({"b": [7]}))
    with pytest.raises(UnsupportedError, match="reads objects of this process"):
        frame.create_view("framed")
    assert rows(connect(tmp_path), "SHOW TABLES") == [("five",), ("q",)]


def test_relations_create_native_tables_by_qualified_names(con: ld.Connection) -> None:
    con.sql("SELECT 1 AS a").create("memory.n")
    con.sql("SELECT 2 AS a").insert_into("memory.n")
    assert rows(con, "FROM n") == [(1,), (2,)]
    con.execute("USE memory")
    con.sql("SELECT 3 AS a").create_view("v")
    assert rows(con, "FROM memory.v") == [(3,)]


def test_relations_of_other_connections_are_not_changed() -> None:
    con = duckdb.connect()
    con.sql("SELECT 1 AS a").create("n")
    con.sql("FROM n").insert_into("n")
    assert con.sql("FROM n").create_view("v").fetchall() == [(1,), (1,)]
    assert rows(con, "SELECT view_name FROM duckdb_views() WHERE NOT internal") == [("v",)]


def test_rows_are_not_inserted_through_a_relation_of_a_lance_table(con: ld.Connection) -> None:
    with pytest.raises((duckdb.Error, LanceDuckError)):
        con.table("q").insert([2])
    assert rows(con, "FROM q") == [(1,)]


def test_copy_from_database_includes_schemas(con: ld.Connection, tmp_path: Path, connect: Connect) -> None:
    con.execute("ATTACH ':memory:' AS n; CREATE TABLE n.a AS SELECT 1 AS i; CREATE SCHEMA n.s")
    con.execute("CREATE TABLE n.s.b AS SELECT 2 AS z; CREATE VIEW n.v AS SELECT 3 AS y")
    with pytest.warns(UserWarning, match="leaves out: view v"):
        con.execute("COPY FROM DATABASE n TO lance")
    again = connect(tmp_path)
    assert rows(again, "FROM a") == [(1,)]
    assert rows(again, "FROM s.b") == [(2,)]
    again.execute("ATTACH ':memory:' AS back; CREATE VIEW v AS FROM a")
    with pytest.warns(UserWarning, match="leaves out: view v"):
        again.execute("COPY FROM DATABASE lance TO back")
    assert rows(again, "FROM back.s.b") == [(2,)]


def test_a_failed_copy_removes_new_schemas(con: ld.Connection) -> None:
    con.execute("ATTACH ':memory:' AS n; CREATE SCHEMA n.s; CREATE TABLE n.s.q AS SELECT 2 AS z")
    con.execute("CREATE SCHEMA n.t; CREATE TABLE n.t.u AS SELECT 'x'::ENUM('x') AS e")
    with pytest.raises(UnsupportedError, match="ENUM"):
        con.execute("COPY FROM DATABASE n TO lance")
    assert rows(con, "SELECT schema_name FROM information_schema.schemata WHERE catalog_name = 'lance'") == [("main",)]


def test_exports_include_schemas(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE SCHEMA s; CREATE TABLE s.b AS SELECT 2 AS z; CREATE TABLE s.c AS SELECT 3 AS y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.execute(f"EXPORT DATABASE '{tmp_path}/out'")
    native = duckdb.connect()
    native.execute(f"IMPORT DATABASE '{tmp_path}/out'")
    assert rows(native, "FROM s.b") == [(2,)]
    assert rows(native, "FROM s.c") == [(3,)]
    assert rows(native, "FROM q") == [(1,)]
