"""Nearest-row joins that become searches, and the columns they need."""

from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules import join_keys, nearest_by
from lance_duck.duck.statement.text import Statement


def _found(sql: str) -> list[dict[str, Any]]:
    proposals = nearest_by.find(Statement(sql))
    return [
        {
            "table": sql[join.search.inner.place.start : join.search.inner.place.end],
            "other": sql[join.search.start : join.search.end],
            "metric": join.search.inner.metric,
            "column": join.search.inner.column,
            "vector": join.search.inner.vector,
            "guess": join.is_guess,
            "where": join.where,
            "condition": None if join.search.inner.condition is None else join.search.inner.condition.where,
        }
        for proposal in proposals
        for join in proposal.joins
    ]


def _one(**changed: Any) -> dict[str, Any]:
    plain = {"table": "t", "other": "q", "metric": "l2", "column": "w", "vector": "v", "guess": False}
    return {**plain, "where": None, "condition": None, **changed}


L2 = "array_distance(q.v, t.w)"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT * FROM q JOIN t NEAREST 3 BY DISTANCE {L2}", [_one()]),
        (f"SELECT * FROM q JOIN t NEAREST 3 BY SIMILARITY -{L2}", [_one()]),
        (f"SELECT * FROM q JOIN t NEAREST 3 BY SIMILARITY {L2}", []),
        ("SELECT * FROM q JOIN t NEAREST BY DISTANCE array_cosine_distance(w, q.v)", [_one(metric="cosine")]),
        (
            "SELECT * FROM q JOIN t NEAREST BY DISTANCE array_distance(v, t.w)",
            [_one(guess=True)],
        ),
        (
            "SELECT * FROM q JOIN t NEAREST BY DISTANCE array_distance(v, w)",
            [_one(guess=True, column="w", vector="v"), _one(guess=True, column="v", vector="w")],
        ),
        ("SELECT * FROM p, q JOIN t NEAREST BY DISTANCE array_distance(v, t.w)", []),
        (f"SELECT * FROM p JOIN q ON p.a = q.a JOIN t NEAREST BY DISTANCE {L2}", [_one()]),
        (
            f"SELECT * FROM q JOIN t NEAREST BY DISTANCE {L2} WHERE q.n < 5 AND t.id = 3 AND f(q.n) = 1",
            [_one(where='("q"."n" < 5)')],
        ),
        (f"SELECT * FROM p LEFT JOIN q ON p.a = q.a JOIN t NEAREST BY DISTANCE {L2} WHERE q.n < 5", [_one()]),
        (
            f"SELECT * FROM q JOIN (SELECT * FROM u t WHERE t.x = ?) t NEAREST BY DISTANCE {L2}",
            [_one(table="u", condition='"x" = ?')],
        ),
        (f"SELECT * FROM q JOIN (SELECT id, w FROM u) t NEAREST BY DISTANCE {L2}", [_one(table="u")]),
        (f"SELECT * FROM q JOIN (SELECT id, x AS w FROM u) t NEAREST BY DISTANCE {L2}", []),
        (f"SELECT * FROM q JOIN (SELECT * FROM u LIMIT 3) t NEAREST BY DISTANCE {L2}", []),
        (f"SELECT * FROM q JOIN (SELECT DISTINCT * FROM u) t NEAREST BY DISTANCE {L2}", []),
        (f"SELECT * FROM q JOIN (SELECT * FROM u WHERE u.x = q.x) t NEAREST BY DISTANCE {L2}", []),
        (f"WITH q AS (SELECT 1) SELECT * FROM q JOIN t NEAREST BY DISTANCE {L2}", []),
        (f"WITH t AS (SELECT 1) SELECT * FROM q JOIN t NEAREST BY DISTANCE {L2}", []),
        (f"WITH r AS (SELECT * FROM q JOIN t NEAREST BY DISTANCE {L2}) FROM r", [_one()]),
        (f"SELECT (SELECT max(t.id) FROM q JOIN t NEAREST BY DISTANCE {L2}) AS m FROM o", [_one()]),
        (f"SELECT (SELECT max(t.id) FROM q JOIN t NEAREST BY DISTANCE {L2}) FROM o", []),
        (f"FROM q JOIN t NEAREST BY DISTANCE {L2} SELECT q.v", [_one()]),
        (f"SELECT * FROM q JOIN t NEAREST BY DISTANCE {L2} + 1", []),
        ("SELECT * FROM q JOIN t NEAREST BY DISTANCE array_distance(q.v, q.w)", []),
        (f"SELECT * FROM q FULL JOIN p ON true JOIN t NEAREST BY DISTANCE {L2}", []),
        ("SELECT * FROM q JOIN t AS t(w) NEAREST BY DISTANCE array_distance(q.v, t.w)", []),
        (f"SELECT * FROM q TABLESAMPLE 10% JOIN t NEAREST BY DISTANCE {L2}", []),
    ],
)
def test_nearest_by_joins_are_found(sql: str, expected: list[dict[str, Any]]) -> None:
    assert _found(sql) == expected


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("q.n, t.id", {"n", "id", "v", "w", "q", "t"}),
        ("*", None),
        ("t.*", None),
        ("t", None),
        ("count(*)", {"v", "w", "q", "t"}),
        ("COLUMNS('x')", None),
    ],
)
def test_only_needed_columns_are_requested(select: str, columns: set[str] | None) -> None:
    (proposal,) = nearest_by.find(Statement(f"SELECT {select} FROM q JOIN t NEAREST BY DISTANCE {L2}"))
    found = proposal.joins[0].search.inner.columns
    assert found is None if columns is None else found == columns


def test_join_keys_do_not_drop_rows_before_ranking() -> None:
    text = f"SELECT * FROM q JOIN t NEAREST 3 BY DISTANCE {L2} JOIN d ON d.k = t.k "
    text += "WHERE d.x = 3 AND t.j IN (SELECT j FROM e)"
    narrowed = {text[join.start : join.end] for found in join_keys.find(Statement(text)) for join in found.joins}
    assert narrowed == {"d"}
