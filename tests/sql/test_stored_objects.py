"""Views, macros, types and their comments are stored in the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import lancedb
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, LanceDuckError, TableWarning, UnsupportedError

Connect = Callable[..., ld.Connection]
OF_NOW = duckdb.__version__.startswith("2")


def rows(con: Any, sql: str) -> list[Any]:
    return sorted(con.execute(sql).fetchall())


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT 1 AS a; INSERT INTO q VALUES (2); CREATE SCHEMA s")
    return con


@pytest.fixture
def again(tmp_path: Path, connect: Connect) -> Callable[[], ld.Connection]:
    """Opens the folder like another process."""
    return lambda: connect(tmp_path)


@pytest.mark.parametrize(
    ("create", "read", "expected"),
    [
        ("VIEW v AS SELECT a + 1 AS b /* kept */ FROM q", "FROM v", [(2,), (3,)]),
        ("VIEW v(x, y) AS SELECT a, a * 2 FROM lance.main.q", "SELECT x + y FROM v", [(3,), (6,)]),
        ("VIEW s.v AS FROM main.q", "FROM s.v", [(1,), (2,)]),
        ("VIEW v AS FROM q AT (VERSION => 1)", "FROM v", [(1,)]),
        ("VIEW v AS SELECT version FROM lance_versions('q')", "FROM v", [(1,), (2,)]),
        ("RECURSIVE VIEW v(n) AS SELECT 1 UNION ALL SELECT n + 1 FROM v WHERE n < 3", "FROM v", [(1,), (2,), (3,)]),
        ('VIEW "Ünlaut x" AS FROM q', 'FROM "Ünlaut X"', [(1,), (2,)]),
        ("MACRO m(a, b := 2) AS a + b, (a, b, c) AS a * b * c", "SELECT m(1), m(2, 3, 4)", [(3, 24)]),
        ("FUNCTION m(a) AS a || '$$' || 'b'", "SELECT m('x')", [("x$$b",)]),
        ("MACRO m(n) AS TABLE SELECT a FROM q WHERE a <= n", "FROM m(1)", [(1,)]),
        ("TYPE t AS ENUM ('b', 'a')", "SELECT 'a'::t > 'b'::t", [(True,)]),
        ("TYPE t AS ENUM (SELECT a::VARCHAR FROM q ORDER BY a)", "SELECT enum_range(NULL::t)", [(["1", "2"],)]),
        ("TYPE t AS STRUCT(x INTEGER, y VARCHAR)", "SELECT {'x': 1, 'y': 'z'}::t", [({"x": 1, "y": "z"},)]),
    ],
)
def test_an_object_is_there_next_time(
    con: ld.Connection, again: Callable[[], ld.Connection], create: str, read: str, expected: list[Any]
) -> None:
    con.execute(f"CREATE {create}")
    assert rows(con, read) == rows(again(), read) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TEMP VIEW v AS FROM q",
        "CREATE VIEW memory.v AS FROM q",
        "CREATE TEMP MACRO v() AS 1",
        "CREATE MACRO memory.v() AS 1",
    ],
)
def test_temporary_and_native_objects_are_not_stored(con: ld.Connection, tmp_path: Path, sql: str) -> None:
    con.execute(sql)
    assert not ld.connect_namespace("dir", {"root": str(tmp_path)}).objects()


def test_a_filter_next_to_prefilter_is_part_of_the_search_next_time(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE p AS SELECT i AS id, [i, 0]::FLOAT[2] AS v, [i % 10] AS tags FROM range(100) r(i)")
    search = "lance_vector_search('p', 'v', [0, 0], k := 2, prefilter := true)"
    con.execute(f"CREATE VIEW near AS SELECT id FROM {search} WHERE list_contains(tags, 7)")
    assert rows(con, "FROM near") == rows(connect(tmp_path), "FROM near") == [(7,), (17,)]


def test_other_connections_follow_changes(con: ld.Connection, again: Callable[[], ld.Connection]) -> None:
    other = again()
    con.execute("CREATE VIEW v AS SELECT 1 AS a; CREATE MACRO m() AS 1")
    assert rows(other, "SELECT a, m() FROM v") == [(1, 1)]
    other.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS b; CREATE OR REPLACE MACRO m() AS 2")
    assert rows(con, "SELECT b, m() FROM v") == [(2, 2)]
    other.execute("DROP VIEW v; DROP MACRO m")
    for sql in ("FROM v", "SELECT m()"):
        with pytest.raises(duckdb.CatalogException):
            con.execute(sql)


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("CREATE VIEW q AS SELECT 1", AlreadyExistsError, 'Table with name "q" already exists!'),
        ("CREATE OR REPLACE VIEW q AS SELECT 1", AlreadyExistsError, 'Table with name "q" already exists!'),
        ("CREATE VIEW V AS SELECT 1", duckdb.CatalogException, "already exists!"),
        ("CREATE TABLE V(a INTEGER)", AlreadyExistsError, 'View with name "V" already exists!'),
        (
            "CREATE OR REPLACE TABLE v AS SELECT 1",
            AlreadyExistsError,
            "of type View, trying to replace with type Table",
        ),
        ("ALTER VIEW v RENAME TO q", AlreadyExistsError, 'Table with name "q" already exists!'),
        ("CREATE VIEW w AS FROM nosuch", duckdb.CatalogException, "nosuch does not exist"),
        ("CREATE VIEW w AS SELECT ?", LanceDuckError, "(?i)parameter|placeholder|value"),
        ("DROP VIEW nosuch", duckdb.CatalogException, "nosuch does not exist"),
        ("DROP VIEW q", UnsupportedError, "DROP TABLE drops the table"),
        ("DROP TABLE v", duckdb.CatalogException, "of type View, trying to drop type Table"),
        ("INSERT INTO v VALUES (1)", duckdb.Error, "v is not an table"),
        ("CREATE SEQUENCE n", UnsupportedError, "memory.main.n"),
    ],
)
def test_refusals_change_nothing(
    con: ld.Connection, tmp_path: Path, sql: str, error: type[Exception], words: str
) -> None:
    con.execute("CREATE VIEW v AS FROM q")
    namespace = ld.connect_namespace("dir", {"root": str(tmp_path)})
    before = namespace.objects()
    with pytest.raises(error, match=words):
        con.execute(sql)
    assert namespace.objects() == before
    assert rows(con, "FROM v") == rows(con, "FROM q") == [(1,), (2,)]


def test_a_view_of_itself_is_refused_and_the_old_one_stays(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE VIEW v AS FROM q")
    with pytest.raises(duckdb.BinderException, match="recurs"):
        con.execute("CREATE OR REPLACE VIEW v AS FROM v")
    assert rows(con, "FROM v") == [(1,), (2,)]


def test_an_object_that_cannot_be_stored_does_not_stay_in_duckdb(
    con: ld.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    con.execute("CREATE VIEW v AS FROM q; CREATE MACRO m() AS 1")
    with monkeypatch.context() as patch:
        patch.setattr("lance_duck.namespaces.DirectoryNamespace.change_catalog", fail)
        for sql in (
            "CREATE OR REPLACE VIEW v AS SELECT 7",
            "CREATE VIEW w AS SELECT 7",
            "DROP MACRO m",
            "ALTER VIEW v RENAME TO x",
        ):
            with pytest.raises(OSError, match="disk"):
                con.execute(sql)
    assert rows(con, "SELECT a, m() FROM v") == [(1, 1), (2, 1)]
    assert rows(con, "SHOW TABLES") == [("q",), ("v",)]


def test_if_exists_and_if_not_exists(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE VIEW v AS SELECT 1 AS a; CREATE VIEW IF NOT EXISTS v AS SELECT 2 AS a")
    con.execute("CREATE VIEW IF NOT EXISTS q AS SELECT 2 AS a; CREATE TABLE IF NOT EXISTS v AS SELECT 3 AS a")
    con.execute("CREATE MACRO IF NOT EXISTS m() AS 1; CREATE MACRO IF NOT EXISTS m() AS 2")
    con.execute("DROP VIEW IF EXISTS nosuch; DROP MACRO IF EXISTS nosuch; DROP TYPE IF EXISTS nosuch")
    assert rows(con, "SELECT a, m() FROM v") == [(1, 1)]
    assert len(ld.connect_namespace("dir", {"root": str(tmp_path)}).objects()) == 2


def test_views_are_renamed_and_dropped(con: ld.Connection, again: Callable[[], ld.Connection]) -> None:
    con.execute("CREATE VIEW v AS FROM q; ALTER VIEW v RENAME TO w; CREATE VIEW x AS FROM q")
    con.execute(f"ALTER {'TABLE' if OF_NOW else 'VIEW'} x RENAME TO y")
    assert rows(again(), "SHOW TABLES") == [("q",), ("w",), ("y",)]
    con.execute("DROP VIEW w; DROP VIEW y")
    assert rows(again(), "SHOW TABLES") == [("q",)]


def test_a_macro_and_a_table_macro_have_one_name(con: ld.Connection, again: Callable[[], ld.Connection]) -> None:
    con.execute("CREATE MACRO m() AS 1; CREATE MACRO m() AS TABLE SELECT 2 AS a; CREATE OR REPLACE MACRO m() AS 3")
    assert rows(again(), "SELECT m(), a FROM m()") == [(3, 2)]
    con.execute("DROP MACRO TABLE m")
    assert rows(again(), "SELECT m()") == [(3,)]


NAMES = ["lower", "list", "current_setting", "duckdb_views", "typeof"]
NAMES += ["current_database"] if duckdb.__version__ >= "2" else []  # fails in SHOW ALL TABLES of DuckDB 1 itself


@pytest.mark.parametrize("name", NAMES)
def test_a_macro_with_the_name_of_a_function_breaks_nothing(
    con: ld.Connection, again: Callable[[], ld.Connection], name: str
) -> None:
    con.execute(f"CREATE MACRO {name}(x) AS 'mine'")
    con.execute(
        "CREATE VIEW v AS FROM q; CREATE TYPE t AS ENUM (SELECT 'x'); CREATE SCHEMA n; INSERT INTO q VALUES (3)"
    )
    for each in (con, again()):
        assert rows(each, f"SELECT {name}(1), a FROM v WHERE a = 3") == [("mine", 3)]
        assert rows(each, "SHOW TABLES") == [("q",), ("v",)]
        each.execute("USE n; USE lance; COMMENT ON VIEW v IS 'x'")
    con.execute(f"DROP MACRO {name}")


def test_comments_last(con: ld.Connection, again: Callable[[], ld.Connection]) -> None:
    con.execute(
        "CREATE VIEW v AS FROM q; CREATE MACRO m() AS 1; CREATE MACRO tm() AS TABLE SELECT 1; CREATE TYPE t AS INTEGER"
    )
    con.execute("COMMENT ON VIEW v IS 'a view'; COMMENT ON MACRO m IS 'a macro'; COMMENT ON MACRO TABLE tm IS 'rows'")
    con.execute("COMMENT ON TYPE t IS 'a type'")
    if OF_NOW:
        con.execute("COMMENT ON COLUMN v.a IS 'a column'")
    other = again()
    assert rows(other, "SELECT comment FROM duckdb_views() WHERE view_name = 'v'") == [("a view",)]
    functions = "SELECT function_name, comment FROM duckdb_functions() WHERE function_name IN ('m', 'tm')"
    assert rows(other, functions) == [("m", "a macro"), ("tm", "rows")]
    assert rows(other, "SELECT comment FROM duckdb_types() WHERE type_name = 't'") == [("a type",)]
    columns = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'v'"
    assert rows(other, columns) == [("a", "a column" if OF_NOW else None)]
    other.execute("COMMENT ON VIEW v IS NULL")
    assert rows(again(), "SELECT comment FROM duckdb_views() WHERE view_name = 'v'") == [(None,)]


def test_a_view_over_a_dropped_table_is_listed_and_says_why(
    con: ld.Connection, again: Callable[[], ld.Connection]
) -> None:
    con.execute("CREATE VIEW v AS SELECT a, 'x' AS b FROM q; CREATE VIEW w AS FROM v; DROP TABLE q")
    other = again()
    assert rows(other, "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'v'") == [
        ("a", "INTEGER"),
        ("b", "VARCHAR"),
    ]
    with pytest.raises(duckdb.Error, match=r"view v cannot be read: .*q does not exist"):
        other.execute("FROM v")
    other.execute("CREATE TABLE q AS SELECT 9 AS a")
    assert rows(other, "FROM w") == rows(con, "FROM w") == [(9, "x")]


def test_an_object_that_does_not_bind_hides_no_other(
    con: ld.Connection, tmp_path: Path, again: Callable[[], ld.Connection]
) -> None:
    from lance_duck.namespaces import MacroDefinition, TypeDefinition, ViewDefinition

    def edit(draft: Any) -> None:
        draft.put(ViewDefinition(name="bad", query="SELEC 1"))
        draft.put(ViewDefinition(name="worse", query="SELECT 1; DROP TABLE q"))
        draft.put(MacroDefinition(name="bad_macro", definitions="(a) AS nosuch(a)"))
        draft.put(TypeDefinition(name="bad_type", definition="NOSUCH"))
        draft.put(ViewDefinition(name="good", query="SELECT a FROM q"))

    ld.connect_namespace("dir", {"root": str(tmp_path)}).change_catalog(edit)
    other = again()
    with pytest.warns(TableWarning, match=r"^view worse is skipped: its definition is damaged: "):
        assert rows(other, "FROM good") == rows(other, "FROM q") == [(1,), (2,)]
    for name in ("bad", "worse"):
        with pytest.raises((duckdb.Error, LanceDuckError)):
            other.execute(f"FROM {name}")
        other.execute(f"DROP VIEW {name}")
    other.execute("DROP MACRO bad_macro; DROP TYPE bad_type")
    assert rows(again(), "SHOW TABLES") == [("good",), ("q",)]


def test_a_view_of_another_database_name_is_found_by_its_folder(
    con: ld.Connection, tmp_path: Path, connect: Connect
) -> None:
    con.execute(
        "CREATE VIEW v AS SELECT q.a FROM lance.main.q JOIN lance.q AS r USING (a); CREATE VIEW w AS FROM lance.v"
    )
    other = connect()
    other.execute(f"ATTACH '{tmp_path}' AS d (TYPE lance)")
    assert rows(other, "FROM d.w") == [(1,), (2,)]


@pytest.mark.parametrize(
    "query",
    [
        "FROM t",
        "FROM memory.n",
        "FROM n",
        "SELECT * FROM q JOIN t USING (a)",
        "SELECT (SELECT max(a) FROM n)",
        "FROM other.q",
    ],
)
def test_a_view_of_another_database_is_refused(con: ld.Connection, tmp_path: Path, query: str) -> None:
    con.execute("CREATE TEMP TABLE t AS SELECT 1 AS a; CREATE TABLE memory.n AS SELECT 1 AS a")
    con.execute(f"ATTACH '{tmp_path}' AS other (TYPE lance)")
    with pytest.raises(UnsupportedError, match=r"the view reads \S+\.main\.\w+, which other connections may not have"):
        con.execute(f"CREATE VIEW v AS {query}")
    con.execute(f"CREATE TEMP VIEW v AS {query}; CREATE VIEW w AS WITH t AS (FROM q) SELECT a FROM t")
    assert len(rows(con, "FROM w")) == 2


def test_user_variables_are_not_read_by_stored_views(con: ld.Connection, again: Callable[[], ld.Connection]) -> None:
    con.execute("CREATE VIEW v AS FROM q; DROP TABLE q")
    q = [1]
    with pytest.raises(duckdb.Error, match="q does not exist"):
        again().execute("FROM v")
    assert q


def test_other_libraries_change_tables_and_keep_objects(
    con: ld.Connection, tmp_path: Path, again: Callable[[], ld.Connection]
) -> None:
    con.execute("CREATE VIEW v AS FROM q; CREATE MACRO m() AS 1")
    theirs = lancedb.connect(str(tmp_path))
    assert set(theirs.list_tables().tables) == {"q"}
    theirs.create_table("made", [{"a": 1}])
    assert rows(again(), "SELECT a, m() FROM v JOIN made USING (a)") == [(1, 1)]


@pytest.mark.parametrize(
    ("create", "read", "stored", "expected"),
    [
        ("VIEW v AS SELECT lance.m(5) AS b", "FROM v", "SELECT main.m(5) AS b", [(6,)]),
        ('VIEW v AS SELECT LANCE."M" (5) AS b', "FROM v", 'SELECT main."M" (5) AS b', [(6,)]),
        ("VIEW v AS SELECT lance.main.m(5), lance.s.m(5)", "FROM v", "SELECT main.m(5), s.m(5)", [(6, 7)]),
        ("VIEW v AS FROM lance.tm()", "FROM v", "FROM main.tm()", [(1,), (2,)]),
        ("VIEW v AS SELECT 'x'::lance.ty AS b", "FROM v", "SELECT 'x'::main.ty AS b", [("x",)]),
        ("VIEW v AS SELECT CAST('x' AS lance.ty)", "FROM v", "SELECT CAST('x' AS main.ty)", [("x",)]),
        (
            "VIEW v AS SELECT {'k': 'x'}::STRUCT(k lance.ty) AS b",
            "FROM v",
            "SELECT {'k': 'x'}::STRUCT(k main.ty) AS b",
            [({"k": "x"},)],
        ),
        ("MACRO o(a) AS lance.m(a) + 1", "SELECT o(1)", "(a) AS main.m(a) + 1", [(3,)]),
        ("MACRO o() AS TABLE FROM lance.tm()", "FROM o()", "() AS TABLE FROM main.tm()", [(1,), (2,)]),
        ("TYPE o AS lance.ty", "SELECT 'x'::o", "main.ty", [("x",)]),
        ("TYPE o AS STRUCT(k lance.ty)", "SELECT {'k': 'x'}::o", "STRUCT(k main.ty)", [({"k": "x"},)]),
        ("VIEW v AS SELECT lance.a FROM q AS lance", "FROM v", "SELECT lance.a FROM q AS lance", [(1,), (2,)]),
        (
            "VIEW v AS SELECT lance.ty, {'k': lance.ty} FROM (SELECT 1 AS ty) AS lance",
            "FROM v",
            "SELECT lance.ty, {'k': lance.ty} FROM (SELECT 1 AS ty) AS lance",
            [(1, {"k": 1})],
        ),
    ],
)
def test_macros_and_types_are_stored_without_their_database(
    con: ld.Connection, tmp_path: Path, connect: Connect, create: str, read: str, stored: str, expected: list[Any]
) -> None:
    con.execute("CREATE MACRO m(a) AS a + 1; CREATE MACRO s.m(a) AS a + 2; CREATE MACRO tm() AS TABLE FROM q")
    con.execute("CREATE TYPE ty AS ENUM ('x')")
    con.execute(f"CREATE {create}")
    objects = ld.connect_namespace("dir", {"root": str(tmp_path)}).objects()
    (made,) = [each for key, each in objects.items() if key.name in (("v",), ("o",))]
    texts = [getattr(made, field, None) for field in ("query", "definitions", "definition")]
    assert [text for text in texts if text is not None] == [stored]
    other = connect()
    other.execute(f"ATTACH '{tmp_path}' AS d (TYPE lance); USE d")
    assert rows(other, read) == expected
