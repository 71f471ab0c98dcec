from __future__ import annotations

import pytest

from lance_duck.duck.full_text.calls import TextCall, find_text_calls
from lance_duck.duck.statement.text import Statement


def calls(sql: str) -> list[TextCall]:
    found = find_text_calls(Statement.of(sql))
    return [] if found is None else list(found.calls)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM t WHERE match(body, 'x')", [("match", ("body",), "where", False)]),
        ('SELECT * FROM t WHERE NOT MATCH(t."b", ?)', [("match", ("t", "b"), "where", True)]),
        ("FROM t WHERE NOT (a OR match(s.x, $q, slop := 2))", [("match", ("s", "x"), "where", True)]),
        ("FROM t WHERE NOT (a OR NOT match_phrase(b, 'x', 12))", [("match_phrase", ("b",), "where", False)]),
        (
            "SELECT score(t) FROM t JOIN u ON match(b, c)",
            [("score", ("t",), "select", False), ("match", ("b",), "from", False)],
        ),
        ("DELETE FROM t WHERE match(lower(b), 'x')", [("match", (), "where", False)]),
    ],
)
def test_match_calls_are_found_with_their_clause(sql: str, found: list[tuple[str, tuple[str, ...], str, bool]]) -> None:
    assert [(each.function, each.column, each.clause, each.is_negated) for each in calls(sql)] == found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT match FROM t",
        "SELECT match(x) FROM t",
        "SELECT * FROM match('a', 'b')",
        "SELECT x.match('a', 'b') FROM t",
        "CREATE MACRO match(a, b) AS a",
        "SELECT 'match(a, b)' -- match(a, b)",
        "SELECT score() FROM t",
        "SELECT match(a, 'x' FROM t",
    ],
)
def test_other_calls_are_ignored(sql: str) -> None:
    assert calls(sql) == []


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("score(t)", "score(t)"),
        ("score(t)  >  12", "score(t) > 12"),
        ("1 + score(t)", "1 + score(t)"),
        ("CASE WHEN score(t) > 1 THEN 2 END", "CASE WHEN score(t) > 1 THEN 2 END"),
        ("score(t) > 1 AND b", "score(t) > 1 AND b"),
        ("score(t) AS s", None),
        ("score(t) s", None),
        ("score(t) + 1 s", None),
        ("s: score(t)", None),
    ],
)
def test_result_columns_keep_their_names(item: str, name: str | None) -> None:
    for sql in (f"SELECT a, {item}, b FROM t", f"SELECT DISTINCT ON (a, b) {item} FROM t"):
        (call,) = calls(sql)
        assert [title for _, title in call.headings] == ([] if name is None else [name])


def test_arguments_keep_their_source_text() -> None:
    (call,) = calls("SELECT match(b, -- the words\n'a', boost := 2.50, fuzziness => (1 + 11)) FROM t")
    assert [part.text.strip() for part in call.positional] == ["b", "'a'"]
    assert [(name, part.text) for name, part in call.named] == [("boost", "2.50"), ("fuzziness", "(1 + 11)")]
