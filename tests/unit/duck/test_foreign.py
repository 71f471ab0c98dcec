"""Which texts are for DuckDB alone."""

from __future__ import annotations

import pytest

from lance_duck.duck.foreign import is_nameless


@pytest.mark.parametrize(
    "sql", ["SELECT 42", "select 1 + 2 * (3 - 4.5), NULL", "SELECT 42 -- 17", " SELECT\n1 = 1 AND NOT false"]
)
def test_constants_name_nothing(sql: str) -> None:
    assert is_nameless(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 42 FROM t",
        "SELECT t",
        "SELECT 'a'",
        'SELECT "t"',
        "SELECT ?",
        "SELECT $1",
        "SELECT 1; SELECT 2",
        "SELECT 1 -- from t",
        "SELECT now()",
        "SELECT1",
        "SELECT 1nulls",
        "FROM t",
        "",
    ],
)
def test_whatever_may_be_a_name_counts(sql: str) -> None:
    assert not is_nameless(sql)
