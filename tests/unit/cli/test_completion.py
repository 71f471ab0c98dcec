"""Completion of SQL: vocabulary and text before the cursor → words."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

import lance_duck as ld
from lance_duck.cli.sql.completion import CompletionWords, SqlCompleter, candidates

WORDS = CompletionWords(
    {"trips": ["fare", "from_zone", "order"], "zones": ["zone", "name"], "odd name": ["Fare"]},
    ["format", "lance_scan", "floor"],
    ["from", "select", "order", "for"],
    frozenset({"from", "select", "order", "for", "where", "on"}),
)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("SEL", "", ["SELECT"]),
        ("sel", "", ["select"]),
        ("SELECT * FROM tr", "", ["trips"]),
        ("SELECT * FROM ", "", ["trips", "zones", '"odd name"', "lance_scan"]),
        ("SELECT * FROM od", "", ['"odd name"']),
        ("SELECT fa", " FROM trips", ["fare"]),
        ("SELECT f", " FROM trips", ["fare", "from_zone", "for", "from", "format", "floor"]),
        ("SELECT * FROM trips WHERE f", "", ["fare", "from_zone", "for", "from", "format", "floor"]),
        ("SELECT ord", " FROM trips", ['"order"', "order"]),
        ("SELECT t.", " FROM trips AS t", ["fare", "from_zone", '"order"']),
        ("SELECT z.na", " FROM trips JOIN zones z ON true", ["name"]),
        ("SELECT zones.", " FROM trips", ["zone", "name"]),
        ('SELECT "odd name".', "", ['"Fare"']),
        ("UPDATE trips SET fa", "", ["fare"]),
        ("SELECT nothing_like_it", "", []),
    ],
)
def test_completion_offers_the_words_that_fit_the_cursor(before: str, after: str, words: list[str]) -> None:
    found = candidates(WORDS, before, after)[1]
    assert sorted(found) == sorted(words)
    assert found[0:1] == words[0:1]


def test_commands_of_the_shell_are_completed() -> None:
    completer = SqlCompleter(lambda: WORDS, [".help", ".read", ".tables"])
    found = completer.get_completions(Document(".t"), CompleteEvent())
    assert [(each.text, each.start_position) for each in found] == [(".tables", -2)]


def test_completion_uses_the_tables_and_columns_of_the_connection(tmp_path: Path) -> None:
    ld.write_dataset({"id": [1], "Where": [1]}, tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        words = CompletionWords.of(connection)
    assert words.columns == {"t": ["id", "Where"]}
    assert {"array_distance", "lance_scan", "upper"} <= set(words.functions)
    assert "select" in words.reserved
    assert candidates(words, "FROM t WHERE wh")[1][0] == '"Where"'
