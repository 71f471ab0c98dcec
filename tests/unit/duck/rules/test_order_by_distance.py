from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules.order_by_distance import DistanceParameter, find
from lance_duck.duck.rules.table_read import Condition, TablePlace
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement

PROPOSALS: list[tuple[str, dict[str, Any]]] = [
    (
        "SELECT id FROM t ORDER BY array_distance(vec, ?) LIMIT 5",
        {
            "place": TablePlace(15, 16, "t", ("t",)),
            "metric": "l2",
            "vector": 1,
            "bare": (46, 47),
            "limit": 5,
            "columns": {"id", "vec"},
        },
    ),
    (
        "FROM a.t x WHERE k = $k ORDER BY x.vec <=> [1, 2]::FLOAT[2], id LIMIT $n OFFSET 2",
        {"place": TablePlace(5, 8, None, ("a", "t")), "metric": "cosine", "vector": "__lance_v0", "length": 2}
        | {"condition": Condition('"k" = ?', ("k",), frozenset({"k"})), "limit": DistanceParameter("n"), "offset": 2}
        | {"columns": None},
    ),
    (
        "EXPLAIN SELECT id, 1 - array_cosine_distance(vec, ?::FLOAT[3]) AS s FROM t ORDER BY s DESC LIMIT ?",
        {"metric": "cosine", "largest_first": True, "length": 3, "bare": None, "explained": True}
        | {"limit": DistanceParameter(2)},
    ),
    (
        "SELECT id FROM t ORDER BY list_distance(vec, (SELECT v FROM q WHERE n = ?)) LIMIT 1",
        {"query_place": (46, 73), "vector": 'SELECT "v" FROM "q" WHERE "n" = $1', "vector_keys": (("1", 1, "?"),)},
    ),
]


@pytest.mark.parametrize(("sql", "expected"), PROPOSALS)
def test_a_nearest_rows_query_on_one_table_is_proposed(sql: str, expected: dict[str, Any]) -> None:
    text = LiftedText.of(sql).text
    (proposal,) = find(Statement.of(text))
    assert {name: getattr(proposal, name) for name in expected} == expected
    assert text[proposal.place.start : proposal.place.end] == ".".join(proposal.place.name)


NEAREST = "SELECT id FROM {t} ORDER BY array_distance(vec, {v}) LIMIT 2"
PARTS: list[tuple[str, list[str]]] = [
    (f"SELECT * FROM ({NEAREST}) n JOIN u USING (id)", ["t"]),
    (f"WITH n AS ({NEAREST}), m AS ({NEAREST.format(t='b', v='?')}) FROM n JOIN m USING (id)", ["b", "t"]),
    (f"SELECT 1 UNION ALL ({NEAREST}) UNION ALL ({NEAREST.format(t='b', v='$w')})", ["b", "t"]),
    (f"SELECT id FROM u WHERE id IN ({NEAREST}) LIMIT 1", ["t"]),
    (f"WITH w AS (SELECT 1 AS x) {NEAREST}", ["t"]),
    (f"WITH t AS (SELECT 1) SELECT * FROM ({NEAREST})", []),
    (f"WITH q AS (SELECT 1) SELECT * FROM ({NEAREST.replace('{v}', '(SELECT v FROM q)')})", []),
    (f"SELECT * FROM u WHERE EXISTS ({NEAREST.replace('ORDER', 'WHERE k = u.k ORDER')})", []),
]


@pytest.mark.parametrize(("sql", "tables"), PARTS)
def test_subqueries_are_proposed(sql: str, tables: list[str]) -> None:
    text = sql.replace("{t}", "t").replace("{v}", "?")
    assert sorted(text[each.place.start : each.place.end] for each in find(Statement.of(text))) == tables


LAST = "ORDER BY array_distance(t.vec, ?), n LIMIT 2"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        (f"SELECT t.id, n FROM a.t LEFT JOIN u ON t.id = u.id {LAST}", {"id", "vec", "n"}),
        (f"FROM t LEFT JOIN u ON t.a < u.b LEFT OUTER JOIN w ON w.x = u.x WHERE t.k = 1 {LAST}", None),
        (f"SELECT u.* FROM t AS t LEFT JOIN t AS u ON t.id = u.a {LAST}", None),
    ],
)
def test_nearest_rows_before_left_joins_are_proposed(sql: str, columns: set[str] | None) -> None:
    (proposal,) = find(Statement.of(sql))
    assert sql[proposal.place.start : proposal.place.end] in ("t", "a.t")
    assert columns is None or columns <= (proposal.columns or set())
    assert (proposal.columns is None) == (columns is None)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT t.id FROM t JOIN u ON t.id = u.id {LAST}",
        f"SELECT t.id FROM t RIGHT JOIN u ON t.id = u.id {LAST}",
        f"SELECT t.id FROM u LEFT JOIN t ON t.id = u.id {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u USING (id) {LAST}",
        f"SELECT t.id FROM t NATURAL LEFT JOIN u {LAST}",
        f"SELECT t.id FROM t ASOF LEFT JOIN u ON t.id >= u.id {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id JOIN w ON w.id = u.id {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id, w {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE k = 1 {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id WHERE u.k = 1 {LAST}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id {LAST.replace('t.vec', 'vec')}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id = u.id {LAST.replace('t.vec', 'u.vec')}",
        f"SELECT t.id FROM t LEFT JOIN u ON t.id IN (SELECT id FROM w) {LAST}",
    ],
)
def test_rows_that_a_join_may_drop_are_not_searched(sql: str) -> None:
    assert find(Statement.of(sql)) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t ORDER BY array_distance(vec, ?)",
        "SELECT id FROM t ORDER BY array_distance(vec, ?) DESC LIMIT 2",
        "SELECT DISTINCT id FROM t ORDER BY array_distance(vec, ?) LIMIT 2",
        "SELECT id FROM t, u ORDER BY array_distance(vec, ?) LIMIT 2",
        "SELECT id FROM t WHERE random() < k ORDER BY array_distance(vec, ?) LIMIT 2",
        "DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY array_distance(vec, ?) LIMIT 2)",
    ],
)
def test_other_queries_are_not_proposed(sql: str) -> None:
    assert find(Statement.of(sql)) == ()


@pytest.mark.parametrize(("alias", "count"), [("", 0), (" AS nearest", 1)])
def test_a_query_that_names_the_result_column_is_unchanged(alias: str, count: int) -> None:
    sql = f"SELECT (SELECT id FROM t ORDER BY array_distance(vec, $1) LIMIT 1){alias}"
    assert len(find(Statement(sql))) == count
