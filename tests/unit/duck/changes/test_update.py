from __future__ import annotations

import pytest

from lance_duck.duck.changes.rows.update import set_items
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.errors import InvalidInputError

ITEMS = [
    ("a = 1", [("a", "1")]),
    ("a = 1, b = a + 1", [("a", "1"), ("b", "a + 1")]),
    ("a = DEFAULT", [("a", None)]),
    ("(a, b) = (1, (2))", [("a", "1"), ("b", "(2)")]),
    ("(a, b) = ROW(1, DEFAULT)", [("a", "1"), ("b", None)]),
    ("(a, b) = c, d = 4", [("a", "c"), ("b", "c"), ("d", "4")]),
    ("(a) = (3)", [("a", "3")]),
    ("(a, b) = (SELECT 1)", [("a", "(SELECT 1)"), ("b", "(SELECT 1)")]),
    ('"odd, name" = CASE WHEN x = 1 THEN 2 END', [("odd, name", "CASE WHEN x = 1 THEN 2 END")]),
    ("a = b = c", [("a", "b = c")]),
]


@pytest.mark.parametrize(("sql", "items"), ITEMS)
def test_assignments_are_pairs_of_a_column_and_its_value(sql: str, items: list[tuple[str, str | None]]) -> None:
    read = set_items(Clauses.of(sql))
    assert read is not None
    assert [(i.column, None if i.value is None else i.value.text.strip()) for i in read] == items


@pytest.mark.parametrize("sql", ["", "a", "a +", "t.a = 1", "= 1", "(a, 1) = (1, 2)"])
def test_invalid_assignments_are_reported_by_duckdb(sql: str) -> None:
    assert set_items(Clauses.of(sql)) is None


def test_a_tuple_assignment_requires_one_value_per_column() -> None:
    with pytest.raises(InvalidInputError, match="expected 2 values, found 3"):
        set_items(Clauses.of("(a, b) = (1, 2, 3)"))
