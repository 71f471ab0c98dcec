"""Statements that select columns by a key are recognized from their text."""

from __future__ import annotations

from typing import Any

import pytest

from lance_duck.duck.rules.key_select import KeyParameter, KeySelect

FIRST, SECOND = KeyParameter(1), KeyParameter(2)


def parts(text: str) -> tuple[Any, ...] | None:
    select = KeySelect.of(text)
    return None if select is None else (select.table, select.columns, select.key, select.values)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT a FROM t WHERE id = ?", (("t",), (("a", None),), "id", (FIRST,))),
        ("select a,\n b from d.s.t where ID=$1 ;", (("d", "s", "t"), (("a", None), ("b", None)), "ID", (FIRST,))),
        ('SELECT "a b" AS c FROM "odd ""t" WHERE id = 7', (('odd "t',), (("a b", "c"),), "id", (7,))),
        ("SELECT x.a FROM t AS x WHERE x.id IN (?, -5, ?)", (("t",), (("a", None),), "id", (FIRST, -5, SECOND))),
        ("SELECT a FROM d.t WHERE t.id IN ($2, $1)", (("d", "t"), (("a", None),), "id", (SECOND, FIRST))),
        ("SELECT a FROM t WHERE s = 'it''s ?'", (("t",), (("a", None),), "s", ("it's ?",))),
        ("SELECT * FROM t WHERE id = ?", (("t",), None, "id", (FIRST,))),
        ("SELECT a FROM t WHERE id = $key", (("t",), (("a", None),), "id", (KeyParameter("key"),))),
    ],
)
def test_a_select_by_a_key_is_read(text: str, expected: tuple[Any, ...]) -> None:
    assert parts(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t.* FROM t WHERE id = ?",
        "SELECT *, a FROM t WHERE id = ?",
        "SELECT a + 1 FROM t WHERE id = ?",
        "SELECT DISTINCT a FROM t WHERE id = ?",
        "SELECT a FROM t WHERE id = ? AND b = 1",
        "SELECT a FROM t WHERE id = ? LIMIT 1",
        "SELECT a FROM t WHERE id = 1.5",
        "SELECT a FROM t WHERE id = E'a'",
        "SELECT a FROM t WHERE id = --5",
        "SELECT a FROM t WHERE id = ? -- a comment",
        "SELECT a /* a comment */ FROM t WHERE id = ?",
        "SELECT a FROM t, u WHERE id = ?",
        "SELECT a FROM t WHERE id = ?; SELECT 1",
        "SELECT a FROM t WHERE id IN (?, $1)",
        "SELECT a FROM t WHERE id IN ($1, $3)",
        "SELECT a FROM t WHERE id IN ($a, $1)",
        "SELECT a FROM t WHERE id IN ($a, ?)",
        "SELECT u.a FROM t WHERE id = ?",
        "SELECT t.a FROM t AS u WHERE id = ?",
        "SELECT d.t.a FROM d.t WHERE id = ?",
        "SELECT a AS id FROM t WHERE id = ?",
        "SELECT a FROM t WHERE ä = ?",
        "EXPLAIN SELECT a FROM t WHERE id = ?",
        "SELECT a FROM t WHERE id IN (SELECT 1)",
        "SELECT a FROM t WHERE id = ? " + " " * 2_000,
    ],
)
def test_other_statements_are_left_to_duckdb(text: str) -> None:
    assert parts(text) is None


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("SELECT a FROM t WHERE id IN (?, 5, ?)", [1, 2], [1, 5, 2]),
        ("SELECT a FROM t WHERE id IN ($2, $1, $2)", (1, 2), [2, 1, 2]),
        ("SELECT a FROM t WHERE id = $key", {"key": 3}, [3]),
        ("SELECT a FROM t WHERE id = 5", None, [5]),
        ("SELECT a FROM t WHERE id = 5", [], [5]),
        ("SELECT a FROM t WHERE id = ?", [], None),
        ("SELECT a FROM t WHERE id = ?", [1, 2], None),
        ("SELECT a FROM t WHERE id = ?", None, None),
        ("SELECT a FROM t WHERE id = ?", {1: 2}, None),
        ("SELECT a FROM t WHERE id = ?", 7, None),
        ("SELECT a FROM t WHERE id = ?", range(1), None),
        ("SELECT a FROM t WHERE id = $key", {"KEY": 3}, None),
        ("SELECT a FROM t WHERE id = $key", {"key": 3, "more": 4}, None),
    ],
)
def test_parameters_become_values_or_are_left_to_duckdb(text: str, parameters: Any, expected: Any) -> None:
    select = KeySelect.of(text)
    assert select is not None
    assert select.keys(parameters) == expected
