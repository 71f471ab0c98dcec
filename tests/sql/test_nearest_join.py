"""LATERAL with ORDER BY distance LIMIT k is one search, and gives what DuckDB gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sql.nearest_support import Pair, nearest_pair

from lance_duck.duck.rules import lateral
from lance_duck.duck.run import nearest_join
from lance_duck.duck.statement.text import Statement


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """See `nearest_pair`; some queries are there twice."""
    with nearest_pair(tmp_path_factory.mktemp("joined"), ties=True) as pair:
        for each in pair:
            each.execute("INSERT INTO q SELECT n + 100, l, v FROM q WHERE n < 3")
            each.execute("CREATE TABLE holes AS SELECT * FROM q UNION ALL SELECT 999, 0, NULL")
            each.execute("CREATE TABLE empty AS SELECT * FROM q WHERE false")
        yield pair


@pytest.fixture
def joined(carried_out: Callable[[Callable[..., Any]], list[bool]]) -> list[bool]:
    return carried_out(nearest_join.run)


STATEMENTS = [
    "SELECT n, m.id FROM q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.v), id LIMIT 3) m ORDER BY ALL",
    "SELECT n, d FROM q JOIN LATERAL (SELECT array_distance(vec, q.v) AS d FROM t ORDER BY d, id LIMIT 4) m ON d < 2 "
    "WHERE l = 1 ORDER BY ALL",
    "SELECT n, m.* FROM q AS q LEFT JOIN LATERAL (SELECT * FROM t x WHERE label = 2 AND x.id > 9 "
    "ORDER BY x.vec <=> q.v, id LIMIT 2 OFFSET 1) m ON m.id > 100 ORDER BY ALL",
    "FROM q CROSS JOIN LATERAL (SELECT id, n AS own FROM t ORDER BY array_inner_product(t.vec, q.v) DESC, id LIMIT 2) "
    "SELECT n, own, id ORDER BY ALL",
    "SELECT sum(m.id) FROM lq, LATERAL (SELECT id FROM t ORDER BY array_distance(lq.vec, t.vec), id LIMIT 5) m",
]


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("mode", ["auto", "exact"])
def test_results_equal_those_of_duckdb(pair: tuple[Any, Any], joined: list[bool], sql: str, mode: str) -> None:
    ours, theirs = pair
    ours.execute(f"SET lance_nearest = {mode}")
    assert ours.execute(sql).fetchall() == theirs.execute(sql).fetchall()
    assert joined == [True]
    assert ours.sql(sql).fetchall() == theirs.execute(sql).fetchall()
    ours.execute("RESET lance_nearest")


def test_explain_shows_the_search_and_parameters_are_accepted(pair: tuple[Any, Any], joined: list[bool]) -> None:
    ours, theirs = pair
    sql = (
        "SELECT n, m.id FROM q, LATERAL (SELECT id FROM t WHERE label = ? ORDER BY array_distance(t.vec, q.v), id "
        "LIMIT ?) m WHERE n < ? ORDER BY ALL"
    )
    assert ours.execute(sql, [1, 2, 5]).fetchall() == theirs.execute(sql, [1, 2, 5]).fetchall()
    text = ours.execute(f"EXPLAIN {STATEMENTS[0]}").fetchall()[-1][1]
    assert "to 12 queries, metric l2" in text
    assert "VectorIndexQuery" in text


@pytest.mark.parametrize("name", ["holes", "empty"])
def test_duckdb_runs_joins_of_queries_without_neighbours(pair: tuple[Any, Any], joined: list[bool], name: str) -> None:
    sql = (
        f"SELECT n FROM {name}, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, {name}.v) LIMIT 2) ORDER BY n"
    )
    assert pair[0].execute(sql).fetchall() == pair[1].execute(sql).fetchall()
    assert joined == [False]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.v)) m",
        "SELECT 1 FROM q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, v) LIMIT 2) m",
        "SELECT 1 FROM q, LATERAL (SELECT count(*) FROM t ORDER BY array_distance(t.vec, q.v) LIMIT 2) m",
        "SELECT 1 FROM q, LATERAL (SELECT id FROM t WHERE q.n = t.id ORDER BY array_distance(t.vec, q.v) LIMIT 2) m",
        "SELECT 1 FROM q, u, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.v) LIMIT 2) m",
        "SELECT 1 FROM (SELECT * FROM q) q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.v) LIMIT 2) m",
        "SELECT 1 FROM t, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, t.v) LIMIT 2) m",
        "WITH q AS (SELECT 1) FROM q, LATERAL (SELECT id FROM t ORDER BY array_distance(t.vec, q.v) LIMIT 2) m",
    ],
)
def test_unsupported_joins_are_not_rewritten(sql: str) -> None:
    assert lateral.find(Statement.of(sql)) == ()
