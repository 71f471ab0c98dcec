"""Conditions that DuckDB does not pass to a scan reach indexes, and give what native tables give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from sql.list_conditions import answer, change, make_tables, query

import lance_duck as ld
from lance_duck.duck.tables.scan_observer import watching
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE


@pytest.mark.parametrize("writer", ["lance_duck", "pylance"])
@pytest.mark.parametrize("seed", range(2))
def test_random_conditions_on_lists_give_what_native_tables_give(tmp_path: Path, writer: str, seed: int) -> None:
    rng = Random(f"{writer} {seed}")
    ours, native = make_tables(tmp_path, rng, writer)
    with ours, native:
        for _ in range(40):
            sql = query(rng)
            assert answer(ours, sql) == answer(native, sql), sql
        for _ in range(5):
            sql = change(rng)
            assert answer(ours, sql) == answer(native, sql), sql
            assert answer(ours, "FROM t") == answer(native, "FROM t"), sql


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    folder = tmp_path_factory.mktemp("indexed")
    with ld.connect(folder) as connection:
        connection.execute(
            "CREATE TABLE lance.t AS SELECT i AS id, i % 7 AS k, ['x' || (i % 50), NULL] AS tags, 's' || i AS s, "
            "i % 11 AS g, {'tags': ['y' || (i % 50)], 'n': [i % 9]} AS st FROM range(1000) r(i)"
        )
        connection.execute("CREATE TABLE lance.u AS SELECT i AS id, ['x' || i] AS words FROM range(30) r(i)")
        for column, kind in (("id", "BTREE"), ("tags", "LABEL_LIST"), ("s", "BTREE"), ("k", "BITMAP")):
            connection.execute(f"CREATE INDEX ON lance.t USING {kind} ({column})")
        connection.execute("CREATE INDEX ON lance.u USING LABEL_LIST (words)")
    ld.dataset(folder / "t.lance").create_scalar_index("st.tags", "LABEL_LIST")
    with ld.connect(folder) as connection:
        connection.execute("CREATE VIEW plain AS FROM lance.t")
        connection.execute("CREATE VIEW narrow AS SELECT id, tags AS labels FROM plain WHERE k < 5")
        yield connection


def plan(connection: ld.Connection, sql: str, parameters: Any = None) -> str:
    rows = connection.execute(f"EXPLAIN {sql}", parameters).fetchall()
    return "\n".join(text for key, text in rows if key == "lance_plan")


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        *(
            (f"SELECT count(*) FROM t WHERE {condition}", None)
            for condition in (
                *("list_contains(tags, 'x1')", "array_contains(tags, 'x1')", "list_has(tags, 'x1')"),
                *("array_has(t.tags, 'x1')", "contains(tags, 'x1')", "'x1' IN tags", "CAST('x1' AS VARCHAR) IN t.tags"),
                *("list_has_any(tags, ['x1', 'x2'])", "array_has_any(tags, ['x1'])", "tags && ['x1']"),
                *("list_has_all(tags, ['x1'])", "array_has_all(tags, ['x1'])", "tags @> ['x1']", "['x1'] <@ tags"),
                *("st.tags && ['y1']", "'y1' IN t.st.tags", "list_contains(st['tags'], 'y1')"),
                *("list_contains(struct_extract(st, 'tags'), 'y1')", "list_contains(tags, 'x1') AND g = 3"),
                *("list_contains(tags, 'x1') OR id = 7", "list_contains(tags, 'x1') AND NOT list_contains(tags, 'x2')"),
            )
        ),
        ("SELECT * FROM lance.t WHERE list_contains(lance.t.tags, 'x1') ORDER BY id LIMIT 3", None),
        ("SELECT * FROM lance_scan('t') WHERE list_contains(tags, 'x1')", None),
        ("SELECT * FROM t AT (VERSION => 6) AS old WHERE list_contains(old.tags, 'x1')", None),
        ("SELECT rowid, id FROM t WHERE list_contains(tags, 'x1')", None),
        ("SELECT * FROM t WHERE list_contains(tags, ?)", ["x1"]),
        ("SELECT * FROM t WHERE tags && $some", {"some": ["x1", "x2"]}),
        ("SELECT t.id FROM u JOIN t USING (id) WHERE 'x1' IN tags", None),
        ("SELECT * FROM u LEFT JOIN t ON t.id = u.id AND list_contains(t.tags, 'x1')", None),
        ("SELECT * FROM u WHERE EXISTS (FROM t WHERE t.id = u.id AND 'x1' IN t.tags)", None),
        ("WITH c AS (SELECT tags AS w, id FROM t), d AS (FROM c) SELECT * FROM d WHERE 'x1' IN w", None),
        ("SELECT * FROM (SELECT t.*, u.words FROM t JOIN u ON t.id = u.id WHERE 'x1' IN tags) AS q", None),
        ("UPDATE t SET k = 1 WHERE list_contains(tags, 'x1')", None),
        ("UPDATE t SET k = 1 FROM u WHERE t.id = u.id AND list_contains(tags, ?)", ["x1"]),
        ("DELETE FROM t WHERE 'x1' IN tags", None),
        ("DELETE FROM t AS a USING u WHERE a.id = u.id AND array_has(a.tags, 'x1')", None),
        ("SELECT id FROM narrow WHERE list_contains(labels, 'x1')", None),
        ("SELECT * FROM u JOIN narrow AS n ON u.id = n.id AND 'x1' IN n.labels", None),
        ("INSERT INTO u SELECT id, tags FROM t WHERE list_contains(tags, 'x1')", None),
        ("CREATE TABLE lance.copied AS SELECT * FROM t WHERE list_contains(tags, 'x1')", None),
    ],
)
def test_plans_name_the_label_list_index(con: ld.Connection, sql: str, parameters: Any) -> None:
    assert "(LabelList, segments" in plan(con, sql, parameters)


@pytest.mark.parametrize(
    ("condition", "index"),
    [
        ("s LIKE 's12%'", "BTree"),
        ("starts_with(s, 's12')", "BTree"),
        ("s ^@ 's12'", "BTree"),
        ("id IS NOT DISTINCT FROM 7", "BTree"),
        ("id = CAST('7' AS INTEGER)", "BTree"),
        ("id = 3 OR k = 2", "Bitmap"),
        ("id = 3 OR s LIKE 's12%'", "BTree"),
    ],
)
def test_other_conditions_that_stay_in_the_statement_name_their_index(
    con: ld.Connection, condition: str, index: str
) -> None:
    sql = f"SELECT id FROM t JOIN (SELECT id AS z FROM u) AS v ON g = z WHERE {condition}"
    assert f"({index}, segments" in plan(con, sql)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("len(tags) = 2", "indexes do not answer conditions of this form"),
        ("list_contains(tags, NULL)", "indexes do not answer conditions of this form"),
        ("tags <@ ['x1']", "indexes do not answer conditions of this form"),
        ("NOT list_contains(tags, 'x1')", "does not answer: not (list has any of 1)"),
        ("list_contains(tags, 'x1') OR g = 3", "no index on g"),
        ("abs(id) = 3", "indexes do not answer conditions of this form"),
        ("s ILIKE '%s12%'", "does not answer: value has the trigrams of 's12'"),
    ],
)
def test_plans_give_the_reason_why_an_index_is_not_used(con: ld.Connection, condition: str, reason: str) -> None:
    (line,) = (line for line in plan(con, f"SELECT * FROM t WHERE {condition}").splitlines() if "without" in line)
    assert line.startswith("  without an index: DuckDB evaluates ")
    assert reason in line


def test_plans_do_not_mention_columns_without_indexes(con: ld.Connection) -> None:
    assert "without" not in plan(con, "SELECT * FROM t WHERE abs(g) = 3")


def test_a_filter_that_duckdb_passes_to_the_scan_is_not_called_unused(con: ld.Connection) -> None:
    text = plan(con, "SELECT * FROM t WHERE s || '' = 's3'")
    assert ("(BTree, segments" in text, "without" in text) == ((True, False) if SPEAKS_SOURCE else (False, True))


def test_scans_read_only_the_rows_of_the_index(con: ld.Connection) -> None:
    with watching() as watch:
        assert con.execute("SELECT count(*) FROM t WHERE list_contains(tags, 'x1')").fetchall() == [(20,)]
        assert con.execute("SELECT t.id FROM t JOIN u ON t.k = u.id WHERE 'x1' IN tags").fetchall() != []
    assert [scan.rows for scan in watch.scans if "tags" in scan.columns] == [20, 20]


def test_a_macro_replaces_a_list_function(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT i AS id, ['x' || i] AS tags FROM range(9) r(i)")
        con.execute("CREATE INDEX ON lance.t USING LABEL_LIST (tags)")
        con.execute("CREATE MACRO list_contains(a, b) AS true")
        assert con.execute("SELECT count(*) FROM t WHERE list_contains(tags, 'x1')").fetchall() == [(9,)]
        text = plan(con, "SELECT * FROM t WHERE list_contains(tags, 'x1')")
        assert "LabelList, segments" not in text
        assert "(LabelList, tags): a macro has the name of a function that indexes answer\n" in text


def test_the_reason_names_columns_that_differ_only_in_case(tmp_path: Path) -> None:
    rows = {"id": range(9), "tags": [["a"]] * 9, "TAGS": [["b"]] * 9}
    ld.write_dataset(pa.table(rows), tmp_path / "t.lance").create_scalar_index("tags", "LABEL_LIST")
    with ld.connect(tmp_path) as con:
        for condition in ("list_contains(tags, 'a')", "'a' IN tags", "tags && ['a']"):
            text = plan(con, f"SELECT id FROM t WHERE {condition}")
            assert "(LabelList, tags): two columns of the table have names that differ only in case\n" in text


def test_the_reason_names_a_collation(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT ['x' || i] AS tags FROM range(9) r(i)")
        con.execute("CREATE INDEX ON lance.t USING LABEL_LIST (tags)")
        con.execute("SET default_collation = 'nocase'")
        text = plan(con, "SELECT * FROM t WHERE list_contains(tags, 'x1')")
        assert "(LabelList, tags): a setting or a collation may change what the condition means\n" in text


def test_settings_that_change_comparisons_keep_their_meaning(con: ld.Connection) -> None:
    sql = "SELECT count(*) FROM t WHERE list_contains(tags, 'X1')"
    before = con.execute(sql).fetchall()
    try:
        con.execute("SET default_collation = 'nocase'")
        native = con.execute("SELECT count(*) FROM range(1000) r(i) WHERE list_contains(['x' || (i % 50)], 'X1')")
        expected = native.fetchall()
        assert con.execute(sql).fetchall() == expected
    finally:
        con.execute("RESET default_collation")
    assert before == [(0,)]


def test_lists_of_numbers_are_compared_in_every_time_zone(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT i AS id, [i, NULL] AS n FROM range(9) r(i)")
        con.execute("CREATE INDEX ON lance.t USING LABEL_LIST (n)")
        con.execute("SET TimeZone = 'Asia/Tokyo'")
        assert "LabelList, segments" in plan(con, "SELECT * FROM t WHERE n && [1, 2, 3]")
        assert con.execute("SELECT id FROM t WHERE n && [1, 2, 3] ORDER BY id").fetchall() == [(1,), (2,), (3,)]


def test_the_result_of_a_view_follows_changes_of_its_table(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT i AS id, ['x' || i] AS tags FROM range(9) r(i)")
        con.execute("CREATE INDEX ON lance.t USING LABEL_LIST (tags)")
        con.execute("CREATE VIEW v AS SELECT * FROM t")
        sql = "SELECT * FROM v WHERE 'x3' IN tags"
        assert con.execute(sql).fetchall() == [(3, ["x3"])]
        con.execute("ALTER TABLE t ADD COLUMN z INTEGER")
        assert con.execute(sql).fetchall() == [(3, ["x3"], None)]
        con.execute("CREATE OR REPLACE VIEW v AS SELECT 7 AS id, ['x3'] AS tags")
        assert con.execute(sql).fetchall() == [(7, ["x3"])]


def test_relations_and_transactions_see_their_own_rows(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT i AS id, ['x' || i] AS tags FROM range(9) r(i)")
        con.execute("CREATE INDEX ON lance.t USING LABEL_LIST (tags)")
        relation = con.sql("SELECT id FROM t WHERE list_contains(tags, 'new')")
        assert relation.fetchall() == []
        con.execute("BEGIN")
        con.execute("INSERT INTO t VALUES (100, ['new'])")
        assert con.execute("SELECT id FROM t WHERE list_contains(tags, 'new')").fetchall() == [(100,)]
        con.execute("UPDATE t SET id = 101 WHERE list_contains(tags, 'new')")
        con.execute("COMMIT")
        assert con.sql("SELECT id FROM t WHERE list_contains(tags, 'new')").fetchall() == [(101,)]
        con.execute("ALTER TABLE t ALTER COLUMN id TYPE INTEGER")
        con.execute("ALTER TABLE t DROP COLUMN tags")
        con.execute("ALTER TABLE t ADD COLUMN tags INTEGER[]")
        with pytest.raises(duckdb.Error):
            con.execute("SELECT id FROM t WHERE list_contains(tags, 'new')")


def test_a_struct_field_of_the_inner_table_comes_before_a_table_of_the_outer_query(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"o": [{"tags": ["a"]}, {"tags": ["b"]}], "id": [1, 2]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con, duckdb.connect() as native:
        native.execute("CREATE TABLE t AS FROM (VALUES ({'tags': ['a']}, 1), ({'tags': ['b']}, 2)) AS v(o, id)")
        ld.dataset(tmp_path / "t.lance").create_scalar_index("o.tags", "LABEL_LIST")
        for connection in (con, native):
            connection.execute("CREATE TEMP TABLE o AS SELECT ['b'] AS tags")
        sql = "SELECT (SELECT list(id) FROM t WHERE 'a' IN o.tags) AS found FROM o"
        assert con.execute(sql).fetchall() == native.execute(sql).fetchall()
