from __future__ import annotations

import pytest

from lance_duck.duck.statement.clauses import Head, clauses, closing, divided
from lance_duck.duck.statement.tokens import tokens_of

MERGE: list[Head] = [
    ("merge", "into"),
    ("using",),
    ("on",),
    ("when", "matched"),
    ("when", "not", "matched"),
    ("then",),
    ("returning",),
]
INSERT: list[Head] = [("insert", "into"), ("values",), ("select",), ("on", "conflict"), ("returning",), ("where",)]

CUT: list[tuple[str, list[Head], list[tuple[Head, str]]]] = [
    (
        "INSERT INTO t (a, b) VALUES (1, (SELECT 2)), (3, 4) ON CONFLICT DO NOTHING RETURNING *;",
        INSERT,
        [
            (("insert", "into"), "t (a, b) "),
            (("values",), "(1, (SELECT 2)), (3, 4) "),
            (("on", "conflict"), "DO NOTHING "),
            (("returning",), "*"),
        ],
    ),
    (
        "WITH x AS (SELECT 1) INSERT INTO t SELECT 'values', \"select\", t.where -- where\n FROM x",
        INSERT,
        [
            ((), "WITH x AS (SELECT 1) "),
            (("insert", "into"), "t "),
            (("select",), "'values', \"select\", t.where -- where\n FROM x"),
        ],
    ),
    (
        "MERGE INTO t USING s ON CASE WHEN t.a THEN 1 ELSE 2 END = s.a WHEN MATCHED AND s.b[1:2] THEN DELETE "
        "WHEN NOT MATCHED THEN INSERT",
        MERGE,
        [
            (("merge", "into"), "t "),
            (("using",), "s "),
            (("on",), "CASE WHEN t.a THEN 1 ELSE 2 END = s.a "),
            (("when", "matched"), "AND s.b[1:2] "),
            (("then",), "DELETE "),
            (("when", "not", "matched"), ""),
            (("then",), "INSERT"),
        ],
    ),
    ("", INSERT, []),
]


@pytest.mark.parametrize(("sql", "heads", "expected"), CUT)
def test_clauses_are_cut_outside_of_parentheses_and_cases(
    sql: str, heads: list[Head], expected: list[tuple[Head, str]]
) -> None:
    parts = clauses(tokens_of(sql), heads)
    assert [(part.head, part.text) for part in parts] == expected
    assert "".join(sql[part.start : part.end] for part in parts) == sql.removesuffix(";")


def test_lists_are_divided_outside_of_parentheses_and_cases() -> None:
    parts = divided(tokens_of("a = (1, 2), b = [3, 4], c = CASE WHEN x THEN 1 END, (d, e) = (5, 6)"), ",")
    assert [part[0].text + part[-1].text for part in parts] == ["a)", "b]", "cEND", "()"]


def test_a_parenthesis_finds_the_one_that_closes_it() -> None:
    tokens = tokens_of("f(a[1], (b))")
    assert closing(tokens, 1) == len(tokens) - 1
    assert closing(tokens_of("f(a"), 1) is None
