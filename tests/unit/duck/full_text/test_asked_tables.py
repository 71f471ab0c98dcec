from __future__ import annotations

import pytest

from lance_duck.duck.full_text.asked_tables import AskedTable, find_asked_tables
from lance_duck.duck.statement.text import Statement

ARGUMENTS = """["t"."body"], '{"kind": "match"}', ('duck')::VARCHAR, ''"""
M, S = f"__lance_match({ARGUMENTS})", f"__lance_score({ARGUMENTS})"


def found(sql: str) -> list[AskedTable]:
    return list(find_asked_tables(Statement.of(sql)))


def test_a_table_with_its_calls() -> None:
    sql = f"SELECT {S} FROM lance.t AT (VERSION => 3) AS t JOIN u ON {M}"
    (table,) = found(sql)
    assert sql[table.start : table.end] == "lance.t AT (VERSION => 3)"
    assert (table.read.name, table.read.is_called, [name for name, _ in table.read.version]) == (
        ("lance", "t"),
        True,
        ["version"],
    )
    score, match = table.calls
    assert (sql[score.start : score.end], score.is_score) == (S, True)
    assert (match.texts, match.request, match.words, match.mark) == ('["t"."body"]', '{"kind": "match"}', "duck", "")


@pytest.mark.parametrize(
    ("words", "known", "mark"),
    [("('it''s')", "it's", ""), ("(('a'))", "a", ""), ("($1)", None, "$1"), ("($q )", None, "$q")],
)
def test_words_are_constants_or_parameters(words: str, known: str | None, mark: str) -> None:
    (table,) = found(f"SELECT * FROM t WHERE __lance_match([\"t\".\"body\"], '{{}}', {words}::VARCHAR, '')")
    assert (table.calls[0].words, table.calls[0].mark) == (known, mark)


@pytest.mark.parametrize(
    "condition",
    [f"{M}", f"k = 3 OR {M}", f"({M} AND a) OR b", f"NOT a AND ((b OR {M}))", f"x IN (SELECT 1 FROM v WHERE {M})"],
)
def test_null_is_false_below_and_and_or(condition: str) -> None:
    assert [call.null_is_false for call in found(f"SELECT * FROM t WHERE {condition}")[0].calls] == [True]


@pytest.mark.parametrize(
    "item",
    [
        f"SELECT a OR {M} FROM t",
        f"SELECT 1 FROM t WHERE NOT {M}",
        f"SELECT 1 FROM t WHERE NOT (a OR {M})",
        f"SELECT 1 FROM t WHERE ({M} OR a) IS NULL",
        f"SELECT 1 FROM t WHERE CASE WHEN a AND {M} AND b THEN c END",
        f"SELECT 1 FROM t WHERE f(a AND {M})",
        f"SELECT 1 FROM t WHERE {M} = b",
        f"SELECT 1 FROM t WHERE a BETWEEN b AND {M}",
        f"SELECT 1 FROM t WHERE [a OR {M} OR b][1]",
        f"SELECT 1 FROM t WHERE a ORDER BY b OR {M}",
        f"DELETE FROM u USING t WHERE a RETURNING b OR {M}",
    ],
)
def test_null_differs_from_false_in_other_positions(item: str) -> None:
    assert [call.null_is_false for call in found(item)[0].calls] == [False]


@pytest.mark.parametrize(
    ("sql", "left_out"),
    [
        (f"SELECT * FROM t WHERE {M}", "SELECT * EXCLUDE (c)  FROM t"),
        (
            f"SELECT a, t.*, u.*, count(*), 2 * k FROM t, u WHERE {M}",
            "SELECT a, t.* EXCLUDE (c) , u.*, count(*), 2 * k",
        ),
        (f"SELECT DISTINCT ON (a) * EXCLUDE (b) FROM t WHERE {M}", "SELECT DISTINCT ON (a) * EXCLUDE (c, b) FROM t"),
        (f"SELECT * REPLACE (1 AS a) FROM t WHERE {M}", "SELECT * EXCLUDE (c)  REPLACE (1 AS a) FROM t"),
        (f"FROM t WHERE {M}", "SELECT * EXCLUDE (c) FROM t"),
        (
            f"SELECT (SELECT max(x) FROM (SELECT * FROM u)) FROM t WHERE {M}",
            "SELECT (SELECT max(x) FROM (SELECT * FROM",
        ),
    ],
)
def test_stars_exclude_helper_columns(sql: str, left_out: str) -> None:
    text = sql
    for star in reversed(found(sql)[0].stars):
        text = text[: star.place] + star.text.format("c") + text[star.place :]
    assert text.startswith(left_out)


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT COLUMNS(*) FROM t WHERE {M}",
        f"SELECT * LIKE 'a%' FROM t WHERE {M}",
        f"SELECT struct_pack(t.*) FROM t WHERE {M}",
        f"SELECT coalesce(*) FROM t WHERE {M}",
        f"SELECT lance.t.a FROM lance.t WHERE {M}",
        f"SELECT * FROM t TABLESAMPLE 10% WHERE {M}",
        f"PIVOT t ON a USING sum({M})",
        f"SELECT * FROM (SELECT 1) t WHERE {M}",
        f"WITH t AS (SELECT 1) SELECT * FROM t WHERE {M}",
        f"SELECT a, {M} FROM t GROUP BY a",
        "SELECT * FROM t WHERE __lance_match([\"t\".\"body\"], '{}', (a || 'x')::VARCHAR, '')",
    ],
)
def test_unsupported_statements_are_skipped(sql: str) -> None:
    assert found(sql) == []


def test_match_inside_aggregates_is_found() -> None:
    assert len(found(f"SELECT a, max({S}), count(*) FILTER (WHERE {M}) FROM t GROUP BY a")[0].calls) == 2


@pytest.mark.parametrize(("sql", "may_be"), [("to_json(t)", True), ("t", True), ("t.a", False), ("a AS t", False)])
def test_table_names_used_as_row_values_are_recognised(sql: str, may_be: bool) -> None:
    assert found(f"SELECT {sql} FROM t WHERE {M}")[0].may_be_value == may_be


@pytest.mark.parametrize(
    ("before", "is_kept"),
    [
        ("CREATE OR REPLACE VIEW v AS", True),
        ("PREPARE p AS", True),
        ("CREATE TEMP TABLE c AS", False),
        ("SELECT 1;", False),
    ],
)
def test_some_statements_are_run_later_on(before: str, is_kept: bool) -> None:
    assert found(f"{before} SELECT a FROM t WHERE {M}")[0].is_kept == is_kept
