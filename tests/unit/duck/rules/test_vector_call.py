from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules.vector_call import Parameter, find
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement

PROPOSALS: list[tuple[str, str, dict[str, Any], set[str] | None]] = [
    (
        "SELECT id FROM lance_vector_search('t', 'vec', ?, k := 10) WHERE id > 1",
        "lance_vector_search('t', 'vec', ?, k := 10)",
        {"table_name": "t", "column_name": "vec", "query_vector": Parameter(1), "k": 10},
        {"id"},
    ),
    (
        "FROM lance_vector_search($t, 'it''s', [1, 2]::DOUBLE[], \"k\" => ?, prefilter := false, filter := 'a = (1)')x",
        "lance_vector_search($t, 'it''s', $__lance_v0::DOUBLE[], \"k\" => ?, prefilter := false, filter := 'a = (1)')",
        {"table_name": Parameter("t"), "column_name": "it's", "query_vector": Parameter("__lance_v0")}
        | {"k": Parameter(1), "prefilter": False, "filter": "a = (1)"},
        None,
    ),
]


@pytest.mark.parametrize(("sql", "place", "arguments", "columns"), PROPOSALS)
def test_a_call_with_constants_and_parameters_is_proposed(
    sql: str, place: str, arguments: dict[str, Any], columns: set[str] | None
) -> None:
    text = LiftedText.of(sql).text
    (proposal,) = find(Statement.of(text))
    assert text[proposal.start : proposal.end] == place
    assert (dict(proposal.arguments), proposal.columns) == (arguments, columns)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM lance_vector_search('t', 'vec', ?), u",
        "SELECT id FROM lance_vector_search('t', 'vec', u.v)",
        "SELECT id FROM lance_vector_search('t', 'vec')",
        "SELECT id, $q FROM lance_vector_search('t', 'vec', $q)",
        "SELECT lance_vector_search('t', 'vec', ?)",
        "EXPLAIN SELECT id FROM lance_vector_search('t', 'vec', ?)",
        "SELECT 'lance_vector_search(''t'', ''vec'', ?)'",
    ],
)
def test_other_calls_are_not_proposed(sql: str) -> None:
    assert find(Statement.of(sql)) == ()
