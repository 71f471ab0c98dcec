from __future__ import annotations

import pytest

from lance_duck.duck.changes.options import Options
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.errors import InvalidInputError


def options(text: str) -> dict[str, str]:
    texts = Options.of(Clauses.of(text), "here").texts
    return {name: value.strip() for name, value in texts.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("WITH ()", {}),
        ("WITH (a = 1)", {"a": "1"}),
        ("(TYPE lance, MODE 'append')", {"type": "'lance'", "mode": "'append'"}),
        ("(a = 1)", {"a": "1"}),
        ("with (A := 1 + f(2, 3), b => 'x, y', \"c d\" = NULL)", {"a": "1 + f(2, 3)", "b": "'x, y'", "c d": "NULL"}),
        ("WITH (metric = cosine)", {"metric": "'cosine'"}),
        ("WITH (dry_run)", {"dry_run": "true"}),
        ("WITH (flag = TRUE, older_than = INTERVAL 7 DAYS)", {"flag": "TRUE", "older_than": "INTERVAL 7 DAYS"}),
        ("WITH (a = ?, b = $x)", {"a": "?", "b": "$x"}),
    ],
)
def test_options_are_read_by_name(text: str, expected: dict[str, str]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WITH", "expected WITH .*found WITH"),
        ("rubbish", "found rubbish"),
        ("WITH (a = 1) more", "found WITH"),
        ("WITH (a = 1", "found WITH"),
        ("WITH (a = 1,)", "expected name = value"),
        ("WITH (1)", "expected name = value, found 1"),
        ("WITH (a = 1, A = 2)", "option 'a' is given twice"),
    ],
)
def test_invalid_options_are_rejected(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        options(text)
