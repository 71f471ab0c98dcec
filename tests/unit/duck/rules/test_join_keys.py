from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules.join_keys import find
from lance_duck.duck.statement.text import Statement

PROPOSALS: list[tuple[str, list[tuple[str, str, str, tuple[Any, ...]]]]] = [
    (
        "SELECT * FROM big b JOIN tiny t ON t.v = ? AND b.k = t.k WHERE b.s = ?",
        [
            ("big", "k", 'SELECT "t"."k" AS key FROM "tiny" AS "t" WHERE ("t"."v" = $1)', (("1", 1),)),
            ("tiny", "k", 'SELECT "b"."k" AS key FROM "big" AS "b" WHERE ("b"."s" = $2)', (("2", 2),)),
        ],
    ),
    (
        "EXPLAIN SELECT 1 FROM big WHERE k IN (SELECT x FROM tiny WHERE y = $y)",
        [("big", "k", 'SELECT key FROM (SELECT "x" FROM "tiny" WHERE "y" = $y) AS keys(key)', (("y", "y"),))],
    ),
    (
        "CREATE TABLE u AS SELECT * FROM big LEFT JOIN ns.tiny t USING (k)",
        [("ns.tiny", "k", 'SELECT "big"."k" AS key FROM "big"', ())],
    ),
]


@pytest.mark.parametrize(("sql", "expected"), PROPOSALS)
def test_tables_that_get_keys_are_proposed(sql: str, expected: list[tuple[str, str, str, tuple[Any, ...]]]) -> None:
    (proposal,) = find(Statement.of(sql))
    joins = [(sql[join.start : join.end], join.column, join.keys, join.parameters) for join in proposal.joins]
    assert joins == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM big WHERE k IN (1, 2)",
        "SELECT 1 FROM tiny, big WHERE tiny.big.k IN (SELECT x FROM small)",
        "DELETE FROM big WHERE k IN (SELECT k FROM tiny)",
        "SELECT * FROM big JOIN tiny USING (k); SELECT 1",
        "SELECT 1 FROM big WHERE k IN (SELECT x FROM tiny WHERE v = $__lance_v0)",
        "CREATE VIEW v AS SELECT * FROM big JOIN tiny USING (k)",
    ],
)
def test_other_joins_are_not_proposed(sql: str) -> None:
    assert find(Statement.of(sql)) == ()
