from __future__ import annotations

import pytest

from lance_duck.duck.rules.indexed_condition import find
from lance_duck.duck.statement.text import Statement
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE


def said(sql: str) -> list[tuple[str, str | None, str]]:
    """Return the table, the added alias and all conditions of each proposal."""
    return [
        (sql[each.start : each.end], each.alias, " AND ".join(c.where for c in (each.condition, each.passed) if c))
        for each in find(Statement.of(sql))
    ]


@pytest.mark.parametrize(
    ("sql", "alias", "where"),
    [
        ("SELECT * FROM t WHERE contains(s, 'x')", "t", "(CONTAINS(\"s\", 'x'))"),
        ("SELECT * FROM t AS a WHERE a.s ILIKE '%x%'", None, "(\"s\" ILIKE '%x%')"),
        ("FROM t WHERE s LIKE ? AND k = 3 AND random() > k", "t", '("s" LIKE ?) AND ("k" = 3)'),
        ("SELECT count(*) FROM t WHERE lower(s) = 'x'", "t", "(LOWER(\"s\") = 'x')"),
        ("FROM t WHERE list_contains(t.tags, 'x')", "t", "(ARRAY_CONTAINS(\"tags\", 'x'))"),
        ("FROM t WHERE 'x' IN st.tags AND y = 1", "t", '(\'x\' IN "st"."tags") AND ("y" = 1)'),
        ("FROM t WHERE struct_extract(t.st, 'tags') && ['x']", "t", '("st"."tags" && [\'x\'])'),
        ("FROM t WHERE id IS NOT DISTINCT FROM 7", "t", '("id" IS NOT DISTINCT FROM 7)'),
        ("FROM t, u WHERE contains(t.s, 'x') AND u.k = t.k", "t", "(CONTAINS(\"s\", 'x'))"),
        ("FROM u LEFT JOIN t ON t.k = u.k AND contains(t.s, 'x')", "t", "(CONTAINS(\"s\", 'x'))"),
        ("FROM (SELECT s AS x FROM t) AS q WHERE contains(q.x, 'x')", "t", "(CONTAINS(\"s\", 'x'))"),
        ("FROM (SELECT * FROM t WHERE k = 1) AS q WHERE contains(x, 'x')", "t", '(CONTAINS("x", \'x\')) AND ("k" = 1)'),
        ("WITH c AS (FROM t) FROM c WHERE contains(s, '$x ?')", "t", "(CONTAINS(\"s\", '$x ?'))"),
        ("CREATE TABLE u AS SELECT * FROM t WHERE contains(s, 'x')", "t", "(CONTAINS(\"s\", 'x'))"),
        ("EXPLAIN SELECT * FROM t WHERE suffix(s, 'x')", "t", "(SUFFIX(\"s\", 'x'))"),
    ],
)
def test_string_conditions_on_a_table_are_proposed(sql: str, alias: str | None, where: str) -> None:
    assert said(sql) == [("t", alias, where)]


def test_every_select_of_a_statement_is_examined() -> None:
    sql = "WITH c AS (SELECT * FROM t WHERE contains(s, 'x')) SELECT * FROM c UNION SELECT * FROM u WHERE s LIKE '%y'"
    assert {name for name, _, _ in said(sql)} == {"t", "u"}


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM t WHERE k = 3",
        "SELECT * FROM t LEFT JOIN u ON contains(t.s, 'x')",
        "SELECT * FROM u LEFT JOIN t ON t.k = u.k WHERE contains(t.s, 'x')",
        "SELECT * FROM t RIGHT JOIN u ON t.k = u.k WHERE contains(t.s, 'x')",
        "SELECT * FROM t FULL JOIN u ON contains(t.s, 'x')",
        "SELECT * FROM (SELECT * FROM t LIMIT 3) AS q WHERE contains(s, 'x')",
        "SELECT * FROM (SELECT max(s) AS s FROM t) AS q WHERE contains(s, 'x')",
        "SELECT * FROM (SELECT upper(s) AS s FROM t) AS q WHERE contains(s, 'x')",
        "SELECT * FROM (SELECT *, k AS s FROM t) AS q WHERE contains(s, 'x')",
        "WITH c AS (SELECT * FROM t) SELECT * FROM c, c AS d WHERE contains(c.s, 'x')",
        "SELECT * FROM t WHERE x IN (SELECT y FROM u)",
        "WITH t AS (SELECT 'x' AS s) SELECT * FROM t WHERE contains(s, 'x')",
        "SELECT (SELECT max(s) FROM t WHERE contains(s, 'x'))",
        "SELECT * FROM t USING SAMPLE 10 WHERE contains(s, 'x')",
        "SELECT * FROM t WHERE s COLLATE NOCASE LIKE '%x%'",
        "SELECT * FROM t WHERE other(s) LIKE random()",
        "SELECT k AS s FROM t WHERE contains(s, 'x')",
        "SELECT * FROM t HAVING contains(s, 'x')",
    ],
)
def test_unsupported_statements_are_skipped(sql: str) -> None:
    assert said(sql) == []


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1 passes all conditions together")
@pytest.mark.parametrize(
    ("sql", "where"),
    [
        ("FROM t WHERE k > 3 AND x = 1", '("k" > 3) AND ("x" = 1)'),
        ("FROM t, u WHERE t.k < 3 AND u.k = t.k", '("k" < 3)'),
        ("FROM t WHERE k BETWEEN 0.06 - 0.01 AND 0.07", '("k" BETWEEN 0.06 - 0.01 AND 0.07)'),
        (
            "FROM t WHERE d < DATE '1994-01-01' + INTERVAL 1 YEAR",
            "(\"d\" < CAST('1994-01-01' AS DATE) + INTERVAL '1' YEAR)",
        ),
    ],
)
def test_range_conditions_that_duckdb_passes_are_proposed(sql: str, where: str) -> None:
    assert said(sql) == [("t", "t", where)]
    assert [each.is_passed for each in find(Statement.of(sql))] == [True]
