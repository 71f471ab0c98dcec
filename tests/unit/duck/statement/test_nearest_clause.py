"""NEAREST BY clauses are found and become calls and LATERAL joins."""

from __future__ import annotations

import pytest
from sqlglot import exp

from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.nearest_clause import nearest_clauses
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import tokens_of


def _cut(sql: str) -> list[tuple[str, str, str | None, int]]:
    """Return table, expression, alias and number of each clause."""
    found = nearest_clauses(sql, tokens_of(sql))
    return [(sql[c.table : c.start].strip(), sql[c.expression : c.end], c.alias, c.k) for c in found]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("FROM q JOIN t NEAREST BY DISTANCE d(q.v, t.v)", [("t", "d(q.v, t.v)", "t", 1)]),
        ("FROM q JOIN t NEAREST 12 BY DISTANCE d(v) WHERE x", [("t", "d(v)", "t", 12)]),
        (
            "FROM q JOIN s.t AS a approx nearest 3 by similarity -d(v) * 1e-5 -- so",
            [("s.t AS a", "-d(v) * 1e-5", "a", 3)],
        ),
        ('FROM q JOIN t "A b" EXACT NEAREST 3 BY DISTANCE d(v), u', [('t "A b"', "d(v)", "A b", 3)]),
        ("FROM q JOIN t AS exact NEAREST 3 BY DISTANCE d(v);", [("t AS exact", "d(v)", "exact", 3)]),
        ("FROM q JOIN exact NEAREST BY DISTANCE d", [("exact", "d", "exact", 1)]),
        ("FROM q JOIN (SELECT 1) NEAREST BY DISTANCE d", [("(SELECT 1)", "d", None, 1)]),
        ("FROM q JOIN (SELECT 1) a(x) NEAREST BY DISTANCE d", [("(SELECT 1) a(x)", "d", "a", 1)]),
        ("FROM q JOIN 'b/x.lance' NEAREST BY DISTANCE d", [("'b/x.lance'", "d", "x", 1)]),
        ("FROM q JOIN lance_scan('x') s NEAREST BY DISTANCE d", [("lance_scan('x') s", "d", "s", 1)]),
        ("FROM q JOIN t AT (VERSION => 3) NEAREST BY DISTANCE d", [("t AT (VERSION => 3)", "d", "t", 1)]),
        ("FROM q JOIN t a AT (VERSION => 3) NEAREST BY DISTANCE d", [("t a AT (VERSION => 3)", "d", "a", 1)]),
        (
            "FROM q JOIN t NEAREST BY DISTANCE CASE WHEN left(a, 1) = ? THEN b.using END "
            "LEFT JOIN u NEAREST 2 BY DISTANCE e",
            [("t", "CASE WHEN left(a, 1) = ? THEN b.using END", "t", 1), ("u", "e", "u", 2)],
        ),
        ("SELECT (SELECT 1 FROM q JOIN t NEAREST BY DISTANCE d)", [("t", "d", "t", 1)]),
        ("FROM q JOIN t NEAREST BY DISTANCE d SELECT 1", [("t", "d", "t", 1)]),
        ("FROM q RIGHT JOIN t NEAREST BY DISTANCE d", []),
        ("FROM q NATURAL JOIN t NEAREST BY DISTANCE d", []),
        ("FROM q JOIN t NEAREST 0 BY DISTANCE d", []),
        ("FROM q JOIN t NEAREST 1.5 BY DISTANCE d", []),
        ("FROM q JOIN t NEAREST ? BY DISTANCE d", []),
        ("FROM q JOIN t NEAREST BY DISTANCE", []),
        ("FROM q JOIN t NEAREST BY d", []),
        ("FROM q JOIN LATERAL (SELECT q.v) t NEAREST BY DISTANCE d", []),
        ("FROM q JOIN nearest ON true ORDER BY distance", []),
        ("SELECT 'JOIN t NEAREST BY DISTANCE d'", []),
    ],
)
def test_nearest_clauses_are_extracted(sql: str, expected: list[tuple[str, str, str | None, int]]) -> None:
    assert _cut(sql) == expected


def test_join_kinds_and_orders_are_recognised() -> None:
    sql = (
        "FROM q LEFT OUTER JOIN t EXACT NEAREST BY SIMILARITY a INNER JOIN u APPROX NEAREST BY DISTANCE b "
        "LEFT JOIN w NEAREST BY DISTANCE c"
    )
    found = nearest_clauses(sql, tokens_of(sql))
    assert [(c.is_left, c.is_exact, c.largest_first) for c in found] == [
        (True, True, True),
        (False, False, False),
        (True, False, False),
    ]


def test_parsed_calls_and_offsets_refer_to_the_original_statement() -> None:
    statement = Statement("SELECT * FROM q JOIN t a NEAREST 2 BY DISTANCE f(q.v, ?) JOIN u ON u.x = ?")
    assert statement.for_sqlglot.text == "SELECT * FROM q JOIN t a  ON __lance_nearest_0(f(q.v, $1)) JOIN u ON u.x = $2"
    assert statement.tree is not None
    tables = {table.name: statement.place(table) for table in statement.tree.find_all(exp.Table)}
    assert {name: statement.text[start:end] for name, (start, end) in tables.items()} == {"q": "q", "t": "t", "u": "u"}


def test_any_duckdb_reads_the_lateral_join() -> None:
    sql = "FROM q LEFT JOIN t NEAREST 2 BY SIMILARITY s(?) WHERE x"
    edits = [edit for clause in nearest_clauses(sql, tokens_of(sql)) for edit in clause.as_lateral()]
    assert apply(sql, edits) == (
        "FROM q LEFT JOIN LATERAL (FROM (FROM t  SELECT *, s(?) AS __lance_distance) "
        "SELECT * EXCLUDE (__lance_distance) WHERE __lance_distance IS NOT NULL "
        'ORDER BY __lance_distance DESC NULLS LAST LIMIT 2) AS "t" ON true WHERE x'
    )
