from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules.point_lookup import find
from lance_duck.duck.statement.text import Statement

PROPOSALS: list[tuple[str, str, str | None, str, tuple[Any, ...], set[str] | None]] = [
    ("SELECT id FROM t WHERE id = 7", "t", "t", '("id" = 7)', (), {"id"}),
    ("SELECT * FROM a.t AS x WHERE x.id = ? AND f(s);", "a.t", None, '("id" = ?)', (1,), None),
    (
        'SELECT ?, s FROM "odd t" WHERE 3 < ? AND k IN (?, $n) -- all',
        '"odd t"',
        "odd t",
        '(3 < ?) AND ("k" IN (?, ?))',
        (2, 3, "n"),
        {"s", "k"},
    ),
    ("SELECT id FROM t WHERE id IN (?,?,?)", "t", "t", '("id" IN (?, ?, ?))', (1, 2, 3), {"id"}),
    ("FROM t WHERE d BETWEEN $lo AND $hi", "t", "t", '("d" BETWEEN ? AND ?)', ("lo", "hi"), None),
]


@pytest.mark.parametrize(("sql", "place", "alias", "where", "keys", "columns"), PROPOSALS)
def test_a_simple_filter_on_one_table_is_proposed(
    sql: str, place: str, alias: str | None, where: str, keys: tuple[Any, ...], columns: set[str] | None
) -> None:
    (proposal,) = find(Statement.of(sql))
    table, condition = proposal.table, proposal.condition
    assert (sql[table.start : table.end], table.alias) == (place, alias)
    assert (condition.where, condition.keys, proposal.columns) == (where, keys, columns)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t",
        "SELECT id FROM t, u WHERE id = 1",
        "SELECT id FROM t WHERE k IN $__lance_v0",
        "WITH t AS (SELECT 1 AS id) SELECT id FROM t WHERE id = 1",
        "INSERT INTO u SELECT id FROM t WHERE id = 1",
        "SELECT id FROM t WHERE id = 1; SELECT 2",
        "SELECT count(*) FROM t WHERE id = 1",
        "UPDATE t SET id = 2 WHERE id = 1",
    ],
)
def test_other_filters_are_not_proposed(sql: str) -> None:
    assert find(Statement.of(sql)) == ()
