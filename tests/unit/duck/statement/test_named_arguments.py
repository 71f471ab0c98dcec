from __future__ import annotations

import pytest

from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.named_arguments import named_arguments

FUNCTIONS = frozenset({"lance_scan", "lance_vector_search"})


def named(sql: str) -> str:
    lifted = LiftedText.of(sql)
    return lifted.edited(named_arguments(lifted, FUNCTIONS)).sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("FROM lance_scan('t', version = 3)", "FROM lance_scan('t', version := 3)"),
        ("FROM LANCE_SCAN('t', \"version\"=3)", "FROM LANCE_SCAN('t', \"version\":=3)"),
        ("FROM a, lance_scan('t', tag = 'é = 1')", "FROM a, lance_scan('t', tag := 'é = 1')"),
        (
            "SELECT 1 FROM lance_vector_search('t', 'v', [0.5, 1]::FLOAT[], k = 2, filter = 'a = 1') WHERE (k = 2)",
            "SELECT 1 FROM lance_vector_search('t', 'v', [0.5, 1]::FLOAT[], k := 2, filter := 'a = 1') WHERE (k = 2)",
        ),
        (
            "FROM lance_scan('t', version = (SELECT max(n) FROM x WHERE f(n, m = 2)))",
            "FROM lance_scan('t', version := (SELECT max(n) FROM x WHERE f(n, m = 2)))",
        ),
        (
            "FROM (FROM lance_scan('t', version = 1)) JOIN lance_scan('t', tag = ?) USING (id)",
            "FROM (FROM lance_scan('t', version := 1)) JOIN lance_scan('t', tag := ?) USING (id)",
        ),
    ],
)
def test_an_equals_sign_after_an_argument_name_is_accepted(sql: str, expected: str) -> None:
    assert named(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "FROM lance_scan('t', version := 3)",
        "FROM lance_scan('t', version => 3)",
        "FROM lance_scan('t', version == 3)",
        "FROM lance_other('t', version = 3)",
        "SELECT 'FROM lance_scan(t, version = 3)'",
        "SELECT 1 -- FROM lance_scan('t', version = 3)",
        "SELECT lance_scan(1, x = 3)",
        "FROM lance_scan('t', 1 = 3)",
        "FROM lance_scan('t', version = ",
        "SELECT a = b FROM t",
    ],
)
def test_other_statements_are_unchanged(sql: str) -> None:
    assert named(sql) == sql
