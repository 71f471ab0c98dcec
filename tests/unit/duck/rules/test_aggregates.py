from __future__ import annotations

import pytest

from lance_duck.duck.rules.aggregates import find
from lance_duck.duck.statement.text import Statement


@pytest.mark.parametrize(
    ("sql", "name", "title"),
    [
        ("SELECT count(*) FROM t", ("t",), "count_star()"),
        ("select COUNT ( * )\n from lance.main.T -- all\n;", ("lance", "main", "T"), "count_star()"),
        ('SELECT count(*) AS "how many" FROM "odd t";', ("odd t",), "how many"),
        ("SELECT count(*) Rows FROM t", ("t",), "Rows"),
    ],
)
def test_a_count_of_all_rows_is_proposed(sql: str, name: tuple[str, ...], title: str) -> None:
    (proposal,) = find(Statement.of(sql))
    assert (proposal.name, [count.title for count in proposal.aggregates]) == (name, [title])
    assert sql[: proposal.start] == ""
    assert sql[proposal.end :].strip(" ;\n") in ("", "-- all")


@pytest.mark.parametrize(
    ("sql", "column", "title"),
    [
        ("SELECT count(x) FROM t", "x", "count(x)"),
        ("SELECT COUNT( L_Tax ) FROM t;", "L_Tax", "count(L_Tax)"),
        ("SELECT count(x) AS n FROM t", "x", "n"),
        ("SELECT count(*) AS n FROM t", None, "n"),
    ],
)
def test_a_count_of_a_column_is_proposed(sql: str, column: str | None, title: str) -> None:
    (proposal,) = find(Statement.of(sql))
    (count,) = proposal.aggregates
    assert (proposal.name, count.column, count.title) == (("t",), column, title)


def test_counts_of_several_columns_keep_order_and_offsets() -> None:
    sql = 'SELECT count(x), count(*) AS n, COUNT( y ) "the, y", count(x)\nFROM s.t;'

    (proposal,) = find(Statement.of(sql))

    assert proposal.name == ("s", "t")
    assert [(sql[count.start : count.end], count.column, count.title) for count in proposal.aggregates] == [
        ("count(x)", "x", "count(x)"),
        ("count(*) AS n", None, "n"),
        ('COUNT( y ) "the, y"', "y", "the, y"),
        ("count(x)", "x", "count(x)"),
    ]


def test_minimum_and_maximum_are_proposed_together_with_counts() -> None:
    sql = "SELECT min(x), MAX( y ) AS last, count(*), count(x) FROM t"

    (proposal,) = find(Statement.of(sql))

    assert [(each.function, each.column, each.title) for each in proposal.aggregates] == [
        ("min", "x", "min(x)"),
        ("max", "y", "last"),
        ("count", None, "count_star()"),
        ("count", "x", "count(x)"),
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE x = 1",
        "SELECT count(*) FROM t AS a",
        "SELECT count(*) FROM t a",
        "SELECT count(*) FROM t, u",
        "SELECT count(*) FROM t AT (VERSION => 1)",
        "SELECT count(*) FROM t LIMIT 0",
        "SELECT count(*) FROM 't.lance'",
        "SELECT count(*) FROM f(1)",
        "SELECT count(*) + 1 FROM t",
        "SELECT count(*), 1 FROM t",
        "SELECT count(x) FROM t WHERE x > 1",
        "SELECT count(x), count(y) FROM t LIMIT 0",
        "SELECT count(x), FROM t",
        "SELECT count(x), sum(y) FROM t",
        "SELECT max(*) FROM t",
        "SELECT max(x, 2) FROM t",
        "SELECT min(x + 1) FROM t",
        "SELECT max(DISTINCT x) FROM t",
        "SELECT count(x) AS a b, count(y) FROM t",
        "SELECT count(x) OVER (), count(y) FROM t",
        "SELECT count(DISTINCT x) FROM t",
        "SELECT count(t.x) FROM t",
        'SELECT count("x") FROM t',
        "SELECT count(year) FROM t",
        "SELECT count(NULL) FROM t",
        "SELECT count(1) FROM t",
        "SELECT count('x') FROM t",
        "SELECT count(?) FROM t",
        "SELECT count() FROM t",
        "SELECT sum(x) FROM t",
        "SELECT DISTINCT count(*) FROM t",
        "EXPLAIN SELECT count(*) FROM t",
        "SELECT count(*) FROM t; SELECT 1",
        "SELECT count(*) FILTER (x) FROM t",
        "SELECT count(*) FROM",
    ],
)
def test_other_aggregates_are_skipped(sql: str) -> None:
    assert find(Statement.of(sql)) == ()
