from __future__ import annotations

import pytest

from lance_duck.duck.statement.text import Statement


def test_statements_are_cached_by_text() -> None:
    assert Statement.of("SELECT 1 AS same") is Statement.of("SELECT 1 AS same")


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT ';'; FROM t;", ["SELECT ';' ;", "FROM t ;"]),
        ("SELECT 1 -- ; two\n;;SELECT (SELECT 2)", ["SELECT 1 ;", "SELECT ( SELECT 2 )"]),
        (" ; ", []),
    ],
)
def test_statements_are_split_at_semicolon_tokens(sql: str, parts: list[str]) -> None:
    assert [" ".join(token.text for token in part) for part in Statement.of(sql).parts] == parts


@pytest.mark.parametrize(
    ("sql", "rest", "explained", "stores"),
    [
        ("SELECT 1", "SELECT 1", False, False),
        ("/* c */ FROM t", "FROM t", False, False),
        ("EXPLAIN ANALYZE WITH x AS (FROM t) FROM x", "WITH x AS (FROM t) FROM x", True, False),
        ("CREATE OR REPLACE TEMP TABLE a.b AS SELECT 1", "SELECT 1", False, True),
        ("insert into t select 1;", "select 1;", False, True),
        ("EXPLAIN INSERT INTO t FROM s", "FROM s", True, True),
    ],
)
def test_text_before_a_select_is_recognised(sql: str, rest: str, explained: bool, stores: bool) -> None:
    opening = Statement.of(sql).opening
    assert opening is not None
    assert (sql[opening.end :], opening.explained, opening.stores) == (rest, explained, stores)
    assert Statement.of(sql).tree is not None


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 1; SELECT 2",
        "DELETE FROM t",
        "CREATE VIEW v AS SELECT 1",
        "INSERT INTO t (a) SELECT 1",
        "PREPARE p AS FROM t",
    ],
)
def test_other_statements_have_no_syntax_tree(sql: str) -> None:
    assert Statement.of(sql).opening is None
    assert Statement.of(sql).tree is None


def test_identifiers_are_case_folded_like_duckdb() -> None:
    statement = Statement.of("SELECT Ab, \"C d\", 'e' FROM Ünder -- f")
    assert statement.names == {"select", "ab", "c d", "from", "Ünder"}


def test_table_offsets_refer_to_the_original_statement() -> None:
    sql = "EXPLAIN SELECT ?, '?' FROM lance_scan('x.lance') AS x, ns.\"a b\" WHERE ?"
    statement = Statement.of(sql)
    assert statement.marks == (15, 70)
    assert statement.for_sqlglot.text == sql.replace("SELECT ?", "SELECT $1").replace("WHERE ?", "WHERE $2")
    assert statement.tree is not None
    (table,) = (table for table in statement.tree.find_all(type(statement.tree.args["from_"].this)) if table.db)
    start, end = statement.place(table)
    assert sql[start:end] == 'ns."a b"'


def test_a_syntax_tree_is_freed_after_use() -> None:
    statement = Statement("SELECT 1")
    assert statement.result("parts", lambda each: len(each.tree.expressions)) == 1
    assert "tree" not in vars(statement)
    assert statement.result("parts", lambda _: pytest.fail("read again")) == 1


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("SELECT $1,$2 FROM t", "SELECT $1 ,$2 FROM t"),
        ("SELECT ?+? FROM t", "SELECT $1 +$2 FROM t"),
        ("SELECT $a||$b,'$' FROM t", "SELECT $a ||$b ,'$' FROM t"),
        ("SELECT ($1)-$2, $3 FROM t", "SELECT ($1 )-$2, $3 FROM t"),
    ],
)
def test_adjacent_placeholders_are_separated_for_sqlglot(sql: str, read: str) -> None:
    statement = Statement(sql)
    assert statement.for_sqlglot.text == read
    assert statement.tree is not None
    assert statement.readable == sql.replace("?+?", "$1+$2")
