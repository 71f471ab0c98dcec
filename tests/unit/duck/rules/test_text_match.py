from __future__ import annotations

import pytest

from lance_duck.duck.rules.order_by_distance import DistanceParameter
from lance_duck.duck.rules.text_match import MatchSelect, find
from lance_duck.duck.statement.text import Statement

DUCK = """["t"."body"], '{"kind": "match"}', ('duck')::VARCHAR, ''"""
GIVEN = """["t"."body"], '{"kind": "match"}', ($q)::VARCHAR, ''"""
MATCH, SCORE = f"__lance_match({DUCK})", f"__lance_score({DUCK})"
BEST = f"ORDER BY {SCORE} DESC LIMIT 10"


def found(sql: str) -> list[MatchSelect]:
    return list(find(Statement.of(sql)))


def test_a_required_match_is_proposed() -> None:
    sql = f"SELECT * FROM t WHERE k > 3 AND {MATCH} {BEST}"
    (select,) = found(sql)
    table = select.table
    assert (sql[table.start : table.end], table.alias, table.name) == ("t", "t", ("t",))
    (call,) = select.calls
    assert sql[call.start : call.end] == MATCH
    assert (call.request, call.words) == ('{"kind": "match"}', "duck")


def test_match_words_may_be_a_parameter() -> None:
    score = f"__lance_score({GIVEN})"
    (select,) = found(f"SELECT * FROM u AS t WHERE __lance_match({GIVEN}) ORDER BY {score} DESC LIMIT 3")
    (call,) = select.calls
    assert (select.table.alias, call.words, call.key, call.mark) == (None, None, "q", "$q")


def test_several_matches_and_selects_are_proposed() -> None:
    scores = f"{SCORE} + __lance_score({GIVEN})"
    inner = f"(SELECT * FROM t WHERE {MATCH} AND __lance_match({GIVEN}) ORDER BY {scores} DESC LIMIT 3)"
    (select,) = found(f"WITH c AS {inner} SELECT * FROM c")
    assert [call.words for call in select.calls] == ["duck", None]
    assert len(found(f"SELECT * FROM {inner} UNION SELECT * FROM (SELECT * FROM t WHERE {MATCH} {BEST})")) == 2


@pytest.mark.parametrize(
    ("clauses", "where"),
    [
        (f"SELECT id, {SCORE} FROM t WHERE {MATCH} {BEST}", None),
        (f"SELECT id, {SCORE} AS s FROM t WHERE {MATCH} AND k > 3 ORDER BY s DESC, id LIMIT 10", '("k" > 3)'),
        (f"SELECT * FROM t WHERE t.k = $k AND {MATCH} ORDER BY {SCORE} DESC LIMIT 10", '("k" = ?)'),
    ],
)
def test_the_best_rows_are_enough(clauses: str, where: str | None) -> None:
    (select,) = found(clauses)
    assert (select.best.limit, select.best.offset) == (10, 0)
    assert (None if select.best.condition is None else select.best.condition.where) == where


def test_limits_may_be_parameters() -> None:
    (select,) = found(f"SELECT * FROM t WHERE {MATCH} ORDER BY {SCORE} DESC LIMIT $n OFFSET 5")
    assert (select.best.limit, select.best.offset) == (DistanceParameter("n"), 5)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM t WHERE {MATCH} ORDER BY {SCORE} LIMIT 10",
        f"SELECT * FROM t WHERE {MATCH} ORDER BY id, {SCORE} DESC LIMIT 10",
        f"SELECT * FROM t WHERE {MATCH} ORDER BY {SCORE} DESC NULLS FIRST LIMIT 10",
        f"SELECT * FROM t WHERE {MATCH} ORDER BY {SCORE} DESC",
        f"SELECT * FROM t WHERE {MATCH} ORDER BY 1 - {SCORE} DESC LIMIT 10",
        f"SELECT * FROM t WHERE {MATCH} AND random() > 0.5 {BEST}",
        f"SELECT * FROM t WHERE {MATCH} AND lower(a) = 'x' {BEST}",
        f"SELECT DISTINCT a FROM t WHERE {MATCH} {BEST}",
        f"SELECT max(a) FROM t WHERE {MATCH} {BEST}",
        f"SELECT unnest(a) FROM t WHERE {MATCH} {BEST}",
        f"SELECT row_number() OVER () FROM t WHERE {MATCH} {BEST}",
        f"SELECT own(a) FROM t WHERE {MATCH} {BEST}",
        f"SELECT * FROM t WHERE {MATCH} AND __lance_match({GIVEN}) {BEST}",
        f"SELECT a AS k FROM t WHERE {MATCH} AND k > 3 {BEST}",
    ],
)
def test_all_rows_that_match_are_needed(sql: str) -> None:
    assert found(sql) == []


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT * FROM t WHERE {MATCH} OR k = 3 {BEST}",
        f"SELECT * FROM t WHERE NOT {MATCH} {BEST}",
        f"SELECT {MATCH} FROM t {BEST}",
        f"SELECT * FROM t JOIN u USING (id) WHERE {MATCH} {BEST}",
        f"SELECT * FROM t, LATERAL (SELECT 1) WHERE {MATCH} {BEST}",
        f"SELECT * FROM u WHERE {MATCH} {BEST}",
        f"WITH t AS (SELECT 'a' AS body) SELECT * FROM t WHERE {MATCH} {BEST}",
        f"SELECT * FROM t USING SAMPLE 3 WHERE {MATCH} {BEST}",
        f"SELECT * FROM t WHERE __lance_match([\"t\".\"body\"], '{{}}', (q)::VARCHAR, '') {BEST}",
        f"SELECT * FROM t WHERE __lance_match([\"t\".\"body\"], '{{}}', ('a')::VARCHAR, $b) {BEST}",
        f"CREATE TABLE u AS SELECT * FROM t WHERE {MATCH} {BEST}",
    ],
)
def test_unsupported_statements_are_skipped(sql: str) -> None:
    assert found(sql) == []
