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
        (f"SELECT id FROM {CALL} WHERE label = 1", ['("label" = 1)']),
        (
            f"FROM {CALL} r WHERE r.a IN (1, 2) AND _distance < 3 AND s LIKE 'b''%' LIMIT 1",
            ["(\"a\" IN (1, 2)) AND (\"s\" LIKE 'b''%')"],
        ),
        (f"WITH x AS (FROM {CALL} AS r WHERE (a > 1 OR b) ORDER BY a) FROM x", ['(("a" > 1 OR "b"))']),
        (f"FROM {CALL.replace(':=', '=>')} WHERE a = ? AND b = 2", ['("b" = 2)']),
        (f"FROM {TEXT} WHERE a = 1 AND _score > 2 AND lance_fts.b = 2", ['("a" = 1) AND ("b" = 2)']),
        (f"(FROM {CALL} WHERE a = 1) UNION ALL FROM {CALL} WHERE a = 2 UNION FROM u", ['("a" = 1)', '("a" = 2)']),
    ],
)
def test_conditions_next_to_a_prefilter_call_are_proposed(sql: str, conditions: list[str]) -> None:
    text = LiftedText.of(sql).text
    proposals = find(Statement.of(text))
    assert [proposal.condition for proposal in proposals] == conditions
    assert all(text[p.start :].startswith(f"{p.function}(") and text[p.end - 1] == ")" for p in proposals)


@pytest.mark.parametrize(
    "sql",
    [
        f"FROM {CALL}",
        f"FROM {CALL.replace('true', 'false')} WHERE a = 1",
        f"FROM {CALL.replace('prefilter := true', 'nprobes := 3')} WHERE a = 1 -- prefilter",
        f"FROM {CALL.replace('k := 3', 'filter := $$b$$')} WHERE a = 1",
        f"FROM {CALL} r JOIN u USING (id) WHERE a = 1",
        f"FROM {CALL} r, u WHERE a = 1",
        f"FROM u, {CALL} r WHERE a = 1",
        f"FROM {CALL} WHERE _distance < 1",
        f"FROM {CALL} WHERE random() < a",
        f"FROM {CALL} r WHERE other.a = 1",
        f"FROM {CALL} WHERE a IN (SELECT id FROM u)",
        f"FROM {CALL} WHERE a = ",
    ],
)
def test_other_conditions_are_skipped(sql: str) -> None:
    assert find(Statement.of(LiftedText.of(sql).text)) == ()
