"""Statements that group one table by several columns are found from their text."""

from __future__ import annotations

import pytest

from lance_duck.duck.rules.group_keys import find
from lance_duck.duck.statement.text import Statement


def parts(text: str) -> list[str]:
    """Return the group columns and the result columns of the proposal, as they are written."""
    (found,) = find(Statement.of(text))
    return [text[place.start : place.end] for place in (*found.keys, *found.results)]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("SELECT a, sum(x) FROM t GROUP BY a, b", ["a", "b", "a"]),
        (
            'SELECT "a b", v.c AS d FROM s.t AS v WHERE c > ? GROUP BY v.c, "a b" ORDER BY 1',
            ["v.c", '"a b"', '"a b"', "v.c"],
        ),
        ("FROM t SELECT A, max(b) GROUP BY a, b HAVING count(*) > 1 ORDER BY a LIMIT 2", ["a", "b", "A"]),
    ],
)
def test_group_columns_and_their_result_columns_are_located(text: str, places: list[str]) -> None:
    assert parts(text) == places


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t GROUP BY a, b + 1",
        "SELECT a FROM t GROUP BY CUBE (a, b)",
        "SELECT a FROM t GROUP BY GROUPING SETS ((a, b), (a))",
        "SELECT DISTINCT a FROM t GROUP BY a, b",
        "SELECT lower(a) FROM t GROUP BY a, b",
        "SELECT x AS a FROM t GROUP BY a, b",
        "SELECT a AS b FROM t GROUP BY a, b ORDER BY b",
        "SELECT a FROM t GROUP BY a, b ORDER BY b",
        "SELECT a FROM t GROUP BY a, b HAVING a > 'x'",
        "SELECT a FROM t GROUP BY a, b QUALIFY true",
        "SELECT a, rank() OVER (ORDER BY a) FROM t GROUP BY a, b",
        "SELECT a, (SELECT 1) FROM t GROUP BY a, b",
        "SELECT * FROM t GROUP BY a, b",
        "SELECT a FROM t, u GROUP BY a, b",
        "SELECT a FROM t AS v (a, b) GROUP BY a, b",
        "SELECT a FROM t TABLESAMPLE 10% GROUP BY a, b",
        "SELECT a FROM t GROUP BY a, b UNION ALL SELECT 1",
        "WITH t AS (SELECT 1) SELECT a FROM t GROUP BY a, b",
        "CREATE TABLE u AS SELECT a FROM t GROUP BY a, b",
    ],
)
def test_other_statements_are_left_as_written(text: str) -> None:
    assert find(Statement.of(text)) == ()
