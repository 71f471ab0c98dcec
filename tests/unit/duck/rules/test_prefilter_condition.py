from __future__ import annotations

import pytest

from lance_duck.duck.rules.prefilter_condition import find
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement

CALL = "lance_vector_search('t', 'vec', [1, 2], k := 3, prefilter := true)"
TEXT = "lance_fts('t', 'body', 'words', prefilter := true)"


@pytest.mark.parametrize(
    ("sql", "conditions"),
    [
        (f"SELECT id FROM {CALL} WHERE label = 1", [["label = 1"]]),
        (
            f"FROM {CALL} r WHERE r.a IN (1, 2) AND _distance < 3 AND s LIKE 'b''%' LIMIT 1",
            [["r.a IN (1, 2)", "_distance < 3", "s LIKE 'b''%'"]],
        ),
        (f"WITH x AS (FROM {CALL} AS r WHERE (a > 1 OR b) ORDER BY a) FROM x", [["a > 1 OR b"]]),
        (f"FROM {CALL.replace(':=', '=>')} WHERE a = ? AND b = 2", [["a = ?", "b = 2"]]),
        (f"FROM {TEXT} WHERE ((a = 1 AND (b) = 2) AND (c OR d))", [["a = 1", "(b) = 2", "c OR d"]]),
        (f"FROM {CALL} WHERE a AND b OR c", [["a AND b OR c"]]),
        (
            f"FROM {CALL} WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 3 AND 4",
            [["a BETWEEN 1 AND 2", "b NOT BETWEEN 3 AND 4"]],
        ),
        (
            f"FROM {CALL} WHERE CASE WHEN a AND b THEN c END AND [d AND e][1]",
            [["CASE WHEN a AND b THEN c END", "[d AND e][1]"]],
        ),
        (f"FROM {CALL} WHERE (SELECT a AND b) AND c -- AND d", [["(SELECT a AND b)", "c -- AND d"]]),
        (f"(FROM {CALL} WHERE a = 1) UNION ALL FROM {CALL} WHERE a = 2 UNION FROM u", [["a = 1"], ["a = 2"]]),
        (f"INSERT INTO u SELECT id FROM {CALL} WHERE a = 1 ON CONFLICT DO NOTHING", [["a = 1"]]),
        (f"FROM {CALL} WHERE a = 1 USING SAMPLE 2 ROWS", [["a = 1"]]),
        (f"FROM {CALL} r JOIN u USING (id) WHERE a = 1", [["a = 1"]]),
        (f"FROM u, {CALL} r WHERE a = 1", [["a = 1"]]),
        (f"FROM {CALL} WHERE a IN (SELECT id FROM u)", [["a IN (SELECT id FROM u)"]]),
        ("FROM lance_fts('t', 'body', 'words', 3, true) WHERE a = 1", [["a = 1"]]),
    ],
)
def test_where_of_a_select_with_a_prefilter_call_is_divided_at_and(sql: str, conditions: list[list[str]]) -> None:
    text = LiftedText.of(sql).text
    proposals = find(Statement.of(text))
    assert [[part.text.strip() for part in proposal.conditions] for proposal in proposals] == conditions
    assert all(text[proposal.end] == ")" for proposal in proposals)


@pytest.mark.parametrize(
    ("sql", "alias", "facts"),
    [
        (f"FROM {CALL} WHERE a", "lance_vector_search", ["is_alone"]),
        (f"FROM {CALL} AS R WHERE a", "r", ["is_alone"]),
        (f"FROM R : {CALL} WHERE a", "r", ["is_alone"]),
        (f"FROM {CALL} r, u WHERE a", "r", []),
        (f"FROM (FROM {CALL} r WHERE a)", "r", ["is_alone", "is_inner"]),
        (f"FROM u LEFT OUTER JOIN {CALL} r ON true WHERE a", "r", ["is_nullable"]),
        (f"FROM {CALL} r FULL JOIN u ON true WHERE a", "r", ["is_nullable"]),
        (f"FROM {CALL} r LEFT JOIN u ON true WHERE a", "r", []),
        (f"UPDATE u SET x = 1 FROM {CALL} r WHERE a", "r", ["is_change"]),
        (f"DELETE FROM u USING {CALL} r WHERE a", "r", ["is_change"]),
        (f"CREATE OR REPLACE VIEW v AS FROM {CALL} WHERE a", "lance_vector_search", ["is_alone", "stores"]),
        (f"CREATE TEMP MACRO m(x) AS TABLE FROM {CALL} WHERE a", "lance_vector_search", ["is_alone", "stores"]),
    ],
)
def test_the_context_of_a_call_is_known(sql: str, alias: str, facts: list[str]) -> None:
    (proposal,) = find(Statement.of(LiftedText.of(sql).text))
    names = ("is_alone", "is_inner", "is_change", "is_nullable", "stores")
    assert (proposal.alias, [name for name in names if getattr(proposal, name)]) == (alias, facts)


def test_arguments_aliases_and_renamed_columns_are_named() -> None:
    sql = (
        "SELECT a + 1 AS b, c FROM lance_fts('t', 'body', ?, 3, filter => 'x', \"prefilter\" := 1) r(D, \"E\") WHERE b"
    )
    (proposal,) = find(Statement.of(sql))
    assert {name: part.text for name, part in proposal.arguments.items()} == {
        "table_name": "'t'",
        "text_column": "'body'",
        "query": "?",
        "k": "3",
        "filter": "'x'",
        "prefilter": "1",
    }
    assert {name: part.text for name, part in proposal.aliases.items()} == {"b": "a + 1"}
    assert proposal.renamed == ("d", "e")


@pytest.mark.parametrize(
    "sql",
    [
        f"FROM {CALL}",
        f"FROM {CALL.replace('prefilter := true', 'nprobes := 3')} WHERE a = 1 -- prefilter",
        f"FROM {CALL} r ORDER BY a",
        f"FROM u WHERE EXISTS (FROM {CALL})",
        f"FROM u SEMI JOIN {CALL} r ON r.id = u.id WHERE a = 1",
        "SELECT lance_fts('t', prefilter := true) FROM u WHERE a = 1",
    ],
)
def test_other_statements_are_skipped(sql: str) -> None:
    assert find(Statement.of(LiftedText.of(sql).text)) == ()
