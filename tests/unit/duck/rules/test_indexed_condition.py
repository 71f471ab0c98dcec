from __future__ import annotations

import pytest

from lance_duck.duck.rules.text_filter import find
from lance_duck.duck.statement.text import Statement


def said(sql: str) -> list[tuple[str, str | None, str]]:
    found = ((each.table, each.condition) for each in find(Statement.of(sql)))
    return [(sql[table.start : table.end], table.alias, condition.where) for table, condition in found]


@pytest.mark.parametrize(
    ("sql", "alias", "where"),
    [
        ("SELECT * FROM t WHERE contains(s, 'x')", "t", "(CONTAINS(\"s\", 'x'))"),
        ("SELECT * FROM t AS a WHERE a.s ILIKE '%x%'", None, "(\"s\" ILIKE '%x%')"),
        ("FROM t WHERE s LIKE ? AND k = 3 AND random() > k", "t", '("s" LIKE ?) AND ("k" = 3)'),
        ("SELECT count(*) FROM t WHERE lower(s) = 'x'", "t", "(LOWER(\"s\") = 'x')"),
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
        "SELECT * FROM t JOIN u ON t.k = u.k WHERE contains(t.s, 'x')",
        "SELECT * FROM t, u WHERE contains(t.s, 'x')",
        "WITH t AS (SELECT 'x' AS s) SELECT * FROM t WHERE contains(s, 'x')",
        "SELECT (SELECT max(s) FROM t WHERE contains(s, 'x'))",
        "SELECT * FROM t USING SAMPLE 10 WHERE contains(s, 'x')",
        "SELECT * FROM t WHERE s COLLATE NOCASE LIKE '%x%'",
        "SELECT * FROM t WHERE other(s) LIKE random()",
        "SELECT k AS s FROM t WHERE contains(s, 'x')",
        "CREATE TABLE u AS SELECT * FROM t WHERE contains(s, 'x')",
        "SELECT * FROM t HAVING contains(s, 'x')",
    ],
)
def test_unsupported_statements_are_skipped(sql: str) -> None:
    assert said(sql) == []
