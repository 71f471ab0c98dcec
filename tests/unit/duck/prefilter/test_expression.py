from __future__ import annotations

import pytest

from lance_duck.duck.prefilter.expression import Expression, may_read_clock


@pytest.mark.parametrize(
    ("text", "columns", "functions"),
    [
        ("a = 1 AND r.b > ?", ["a", "r.b"], []),
        ("array_has(tags, $word)", ["tags"], ["array_has"]),
        ("s['n'] >= 9 OR s.t.x IS NULL", ["s", "s.t.x"], []),
        ("a BETWEEN 1 AND 2 -- b", ["a"], []),
        ("CASE WHEN a THEN lower(b) ELSE 'c' END LIKE 'd%'", ["a", "b"], ["lower", "~~"]),
        ("day > current_date", ["day"], []),
        ("a::MOOD = 'x'", ["a"], []),
    ],
)
def test_columns_and_functions_are_listed(text: str, columns: list[str], functions: list[str]) -> None:
    expression = Expression.of(text)
    assert expression is not None
    assert sorted(".".join(names) for names in expression.columns) == columns
    assert sorted(expression.functions) == functions
    assert (expression.refused, expression.volatile) == ("", "")


@pytest.mark.parametrize("text", ["list_filter(l, lambda x: x = a) = []", "[x FOR x IN l IF x = a] = []"])
def test_parameters_of_lambdas_are_known(text: str) -> None:
    expression = Expression.of(text)
    assert expression is not None
    names = {names[0] for names in expression.columns}
    assert names - expression.parameters == {"a", "l"}


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a IN (SELECT b FROM u)", "a subquery"),
        ("EXISTS (FROM u)", "a subquery"),
        ("COLUMNS('a') = 1", "*"),
        ("row_number() OVER () = 1", "a window function"),
        ("#1 = 2", "a column by its number"),
    ],
)
def test_constructs_that_are_not_of_one_row_are_named(text: str, refused: str) -> None:
    expression = Expression.of(text)
    assert expression is not None
    assert expression.refused == refused


@pytest.mark.parametrize(
    ("text", "volatile", "is_independent"),
    [
        ("length(a) > 3 AND b % 2 = 0", "", True),
        ("random() < a", "random", False),
        ("uuid() = a", "uuid", False),
        ("getvariable('x') = a", "", False),
        ("current_setting('threads') = a", "", False),
        ("my_macro(a)", "", False),
        ("date_trunc('day', a) = b", "", True),
        ("list_append(a, 1) = b", "", True),
    ],
)
def test_functions_that_depend_on_the_connection_are_known(text: str, volatile: str, is_independent: bool) -> None:
    expression = Expression.of(text)
    assert expression is not None
    assert (expression.volatile, expression.is_independent) == (volatile, is_independent)


@pytest.mark.parametrize("text", ["a =", "a = 1; SELECT 2"])
def test_other_texts_are_not_described(text: str) -> None:
    assert Expression.of(text) is None


@pytest.mark.parametrize(
    ("text", "may"),
    [("t > TIMESTAMPTZ '2020-01-01'", True), ("t < now()", True), ("a = 'today'", True), ("a = 1", False)],
)
def test_texts_that_may_read_the_clock_are_known(text: str, may: bool) -> None:
    assert may_read_clock(text) is may
