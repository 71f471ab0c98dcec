"""String conditions return the same rows by n-gram index and by scan, in every filter language."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.kernels.texts.trigrams import BREAK
from lance_duck.text.trigrams import classes_of

LETTERS = "abcKISkis\u212a\u0130\u0131\u017fßé\u0301É12 _%.-'日"
WORDS = [
    "Istanbul",
    "\u0130stanbul",
    "kelvin",
    "\u212aelvin",
    "stop",
    "\u017ftop",
    "straße",
    "STRASSE",
    "strasse",
    "\u013112",
]


def random_text(rng: random.Random) -> str | None:
    if rng.random() < 0.05:
        return None
    parts = [rng.choice(WORDS) if rng.random() < 0.3 else rng.choice(LETTERS) for _ in range(rng.randrange(9))]
    return "".join(part.swapcase() if rng.random() < 0.1 else part for part in parts)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Return two segments, with rows deleted and moved since, and a later fragment."""
    rng = random.Random(2)

    def rows(start: int, count: int) -> pa.Table:
        texts = pa.array([random_text(rng) for _ in range(count)], pa.string())
        return pa.table({"n": pa.array(range(start, start + count)), "s": texts, "c": texts.dictionary_encode()})

    uri = str(tmp_path_factory.mktemp("texts") / "t.lance")
    dataset = ld.write_dataset(rows(0, 400), uri, max_rows_per_file=150, enable_stable_row_ids=request.param)
    dataset.create_scalar_index("s", "NGRAM")
    dataset.insert(rows(400, 100))
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.delete("n % 9 = 2")
    dataset.update({"s": "'moved ' || s"}, where="n % 13 = 5")
    dataset.insert(rows(500, 50))
    return dataset


PARTS = st.lists(st.sampled_from(WORDS) | st.text(LETTERS, min_size=1, max_size=3), max_size=3).map("".join)
PATTERNS = st.lists(PARTS | st.sampled_from("%_"), max_size=5).map("".join)
EXPRESSIONS = st.lists(
    PARTS | st.sampled_from([".", ".*", "a?", "(stop|kel)", "[a-k]+", "(?i)", r"\w", "i{2}", "(?:anbul|b)", "|", "^"]),
    max_size=4,
).map("".join)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@st.composite
def leaves(draw: st.DrawFn) -> str:
    subject = draw(st.sampled_from(["s", "s", "s", "lower(s)", "upper(s)"]))
    part, pattern, expression = quoted(draw(PARTS)), quoted(draw(PATTERNS)), quoted(draw(EXPRESSIONS))
    options = draw(st.sampled_from(["", ", 'i'", ", 'l'", ", 'c'"]))
    return draw(
        st.sampled_from(
            [
                *(
                    f"{name}({subject}, {part})"
                    for name in ("contains", "starts_with", "ends_with", "prefix", "suffix")
                ),
                *(f"{subject} {word} {pattern}" for word in ("LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE", "~~", "~~*")),
                f"{subject} LIKE {pattern} ESCAPE 'k'",
                f"{subject} ILIKE {pattern} ESCAPE '-'",
                f"{subject} = {part}",
                f"{subject} GLOB {quoted(draw(PARTS).replace('.', '*').replace('-', '?'))}",
                f"regexp_matches({subject}, {expression}{options})",
                f"regexp_like({subject}, {expression})",
                f"regexp_full_match({subject}, {expression})",
                f"{subject} SIMILAR TO {expression}",
                f"{subject} ~ {expression}",
                f"contains(c, {part})",
                "n % 3 = 0",
                f"s IN ({part}, {pattern})",
            ]
        )
    )


def conditions() -> st.SearchStrategy[str]:
    def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(parts, min_size=2, max_size=3)
        return st.one_of(
            several.map(lambda each: "(" + " AND ".join(each) + ")"),
            several.map(lambda each: "(" + " OR ".join(each) + ")"),
            parts.map(lambda each: f"NOT ({each})"),
        )

    return st.recursive(leaves(), combined, max_leaves=4)


def rows_of(dataset: ld.LanceDataset, condition: Any, **options: Any) -> list[int]:
    numbers: list[int] = dataset.to_table(["n"], filter=condition, **options)["n"].to_pylist()
    return numbers


@given(condition=conditions())
def test_an_index_never_changes_a_result(indexed: ld.LanceDataset, condition: str) -> None:
    try:
        expected = rows_of(indexed, condition, use_scalar_index=False)
    except InvalidInputError:
        return  # a regular expression that RE2 refuses
    assert rows_of(indexed, condition) == expected
    assert indexed.count_rows(filter=condition) == len(expected)


@given(data=st.data())
def test_parameters_and_constants_give_the_same_result(indexed: ld.LanceDataset, data: st.DataObject) -> None:
    first, second = data.draw(PARTS), data.draw(PATTERNS)
    text = f"contains(s, {quoted(first)}) OR (s ILIKE {quoted(second)} AND n > 3)"
    expected = rows_of(indexed, text, use_scalar_index=False)
    assert rows_of(indexed, ("contains(s, ?) OR (s ILIKE ? AND n > ?)", [first, second, 3])) == expected
    named = ("contains(s, $a) OR (s ILIKE $b AND n > $n)", {"b": second, "a": first, "n": 3})
    assert rows_of(indexed, named) == expected


@given(data=st.data())
def test_arrow_expressions_keep_their_semantics(indexed: ld.LanceDataset, data: st.DataObject) -> None:
    test = data.draw(
        st.sampled_from([pc.match_substring, pc.starts_with, pc.ends_with, pc.match_like, pc.match_substring_regex])
    )
    pattern = data.draw({pc.match_like: PATTERNS, pc.match_substring_regex: EXPRESSIONS}.get(test, PARTS))
    if test is pc.match_like:
        pattern = pattern.replace("-", "\\")
    leaf = test(pc.field("s"), pattern, ignore_case=data.draw(st.booleans()))
    expression = data.draw(st.sampled_from([leaf, ~leaf, leaf | (pc.field("n") == 3), leaf & (pc.field("n") > 9)]))
    try:
        expected = rows_of(indexed, expression, use_scalar_index=False)
    except InvalidInputError:
        return
    assert rows_of(indexed, expression) == expected


def test_duckdb_case_mapping_agrees_with_trigram_normalisation() -> None:
    points = pa.array([point for point in range(1, 0x110000) if not 0xD800 <= point < 0xE000])
    table = pa.table({"c": pa.array([chr(point) for point in points.to_pylist()])})  # noqa: F841
    connection = duckdb.connect()
    for function in ("lower", "upper"):
        sql = f"SELECT c, {function}(c) FROM table WHERE regexp_full_match({function}(c), '[a-zA-Z0-9]')"
        found = connection.execute(sql.replace("table", '"table"')).fetchall()
        assert len(found) > 60
        for character, letter in found:
            expected = classes_of(letter)
            assert classes_of(character) == ([*expected, BREAK] if character == "\u0130" else expected)
