from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pytest

from lance_duck.duck.statement import tokens
from lance_duck.duck.statement.edits import Edit, EditedText

TEXTS = [
    text
    for file in sorted((Path(__file__).parents[3] / "sql" / "statements").glob("*.sql"))
    for text in file.read_text().split(";")
    if text.count("'") % 2 == text.count('"') % 2 == 0 and tokens.tokens_of(text)
]
REPLACEMENTS = [
    *("", " ", "-", "|", ":=", "=>", "$1", "$name", "1", "2.5", "x", "'a'", '"q"', "''", "é", "--c\n", "/* c */"),
    *(
        "(a + 1)",
        "f(b)",
        '\nAS "x y" ',
        "lance_scan('t', version := coalesce((3)::VARCHAR, '')) AS \"a\"",
        "e'\\''",
        "$$a$$",
    ),
]


@pytest.mark.parametrize("text", ["SELECT a::INT, b->>'$.x', $1, $n", "FROM t WHERE x >= 2.5 AND y <> 'it''s' -- z"])
def test_tokens_of_an_edited_statement_equal_those_of_duckdb(text: str) -> None:
    cut = tokens.tokens_of(text)
    places = [token.start for before, token in pairwise(cut) if before.text != "$"]
    changed = tokens.edited(text, [Edit(place, place, '("q" + $2) ') for place in places[1::2]])
    assert tokens.tokens_of(changed) == tokens._cut(changed)


def test_edits_that_restore_a_statement_are_harmless() -> None:
    first, second = "SELECT 1 AS back", "SELECT 2 AS back"
    assert tokens.edited(first, [Edit(7, 8, "1")]) is first
    assert tokens.edited(first, [Edit(7, 8, "2")]) == second
    assert tokens.edited(second, [Edit(7, 8, "1")]) == first
    assert tokens.tokens_of(first) == tokens._cut(first)
    assert tokens.tokens_of(second) == tokens._cut(second)


def test_a_statement_that_duckdb_cannot_tokenize_has_no_tokens() -> None:
    changed = tokens.edited("SELECT \ud800", [Edit(0, 6, "FROM")])
    assert tokens.tokens_of(changed) == ()


def test_tokens_after_random_edits_equal_those_of_duckdb() -> None:
    choose = random.Random(0)
    derived = 0
    for _ in range(4000):
        source = choose.choice(TEXTS)
        cut = tokens.tokens_of(source)
        edits: list[Edit] = []
        for _ in range(choose.randint(1, 3)):
            first = choose.randrange(len(cut))
            last = min(first + choose.choice([0, 0, 1, 3]), len(cut) - 1)
            start, end = cut[first].start, choose.choice([cut[first].start, cut[last].end, cut[last].end + 1])
            end = min(end, len(source))
            if all(start > edit.end or end < edit.start for edit in edits):
                edits.append(Edit(start, end, choose.choice(REPLACEMENTS)))
        after = EditedText.of(source, edits)
        found, expected = tokens._tokens_after(after, cut), tokens._cut(after.text)
        derived += found is not None
        if found is not None and expected:
            assert found == expected, (source, edits)
    assert derived > 900


SPACES = "\u00a0\u2000\u200b\u202f\u205f\u2060\u3000\ufeff"
PARTS = ("'a b'", "'it''s x'", '"q x"', "1", "-- c x\n", "/* b x */", "/* ' x */", "E'a\\'b x'", "$$d x$$", "AS", ",")


def result(sql: str) -> Any:
    try:
        found = duckdb.execute(sql)
        return str(found.description), found.fetchall()
    except duckdb.Error:
        return "an error"


def test_texts_with_unicode_spaces_mean_what_they_mean_in_duckdb() -> None:
    choose, succeeded = random.Random(0), 0
    for _ in range(300):
        text = " ".join(["SELECT", *choose.choices(PARTS, k=choose.randint(1, 5))]) + choose.choice([" ", ""])
        sql = "".join(choose.choice(SPACES) if each == " " and choose.random() < 0.6 else each for each in text)
        plain = tokens.plain_spaces(sql)
        assert result(plain) == result(sql), ascii(sql)
        succeeded += result(sql) != "an error"
    assert succeeded > 60
