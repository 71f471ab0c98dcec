from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.query import BooleanQuery, FullTextQuery, MatchQuery, Occur, PhraseQuery, PrefixQuery
from lance_duck.text.analyser import Analyser
from lance_duck.text.highlight import highlight, snippet

TEXT = "one two Ducks three four five six lake seven"


def test_matching_words_are_marked() -> None:
    assert ld.highlight("Ducks & a lake", "the duck") == "<b>Ducks</b> & a lake"
    assert ld.highlight("Ducks & a lake", "the duck", "[", post="]") == "[Ducks] & a lake"
    assert ld.highlight("no such word", "duck") == "no such word"
    assert ld.highlight("duck", "") == "duck"


def test_a_snippet_shows_the_best_part_of_a_string() -> None:
    assert ld.snippet(TEXT, "duck", 3) == "…two <b>Ducks</b> three…"
    assert ld.snippet(TEXT, "lake seven", words=2, pre="", post="", gap="") == "lake seven"
    assert ld.snippet(TEXT, "duck") == ld.highlight(TEXT, "duck")


@pytest.mark.parametrize(
    "texts",
    [
        [TEXT, None, ""],
        (TEXT, None, ""),
        pa.array([TEXT, None, ""]),
        pa.array([TEXT, None, ""], pa.string_view()),
        pa.chunked_array([[TEXT], [None, ""]]),
    ],
)
def test_arrays_are_marked_like_search_results(texts: Any) -> None:
    array, terms = pa.array([TEXT, None, ""], pa.large_string()), ["duck", "lake"]
    assert ld.highlight(texts, "ducks lake").equals(highlight(array, terms, Analyser()))
    assert ld.snippet(texts, "ducks lake", 2).equals(snippet(array, terms, Analyser(), words=2))


@pytest.mark.parametrize("texts", [[], [None], pa.array([], pa.string())])
def test_empty_arrays_are_unchanged(texts: Any) -> None:
    assert ld.highlight(texts, "duck").to_pylist() == list(texts)
    assert ld.snippet(texts, "duck").to_pylist() == list(texts)


@pytest.mark.parametrize(
    ("text", "query", "options", "expected"),
    [
        ("Der Läufer läuft", "läufer", {"language": "German"}, "Der [Läufer] läuft"),
        ("duck ducks", "ducks", {"stem": False}, "duck [ducks]"),
        ("Duck duck", "duck", {"lower_case": False}, "Duck [duck]"),
        ("bigduck", "duc", {"base_tokenizer": "ngram"}, "big[duc]k"),
        ("the duck", "the", {"remove_stop_words": False}, "[the] duck"),
    ],
)
def test_parameters_equal_those_of_tokenize(text: str, query: str, options: Any, expected: str) -> None:
    assert ld.highlight(text, query, "[", "]", **options) == expected
    assert ld.snippet(text, query, pre="[", post="]", **options) == expected


@pytest.mark.parametrize("texts", [5, None, b"duck", [5], {"a": 1}, pa.array([1]), pa.array([["duck"]])])
def test_values_that_are_not_strings_are_rejected(texts: Any) -> None:
    with pytest.raises(
        ld.WrongTypeError, match=r"highlight: (invalid strings|the strings have the wrong type): expected"
    ):
        ld.highlight(texts, "duck")


def test_lone_surrogates_are_rejected() -> None:
    for texts in ("a\ud800", ["a\ud800"]):
        with pytest.raises(
            ld.InvalidInputError, match=r"highlight: (bad text|invalid strings): expected valid Unicode"
        ):
            ld.highlight(texts, "duck")
    with pytest.raises(ld.InvalidInputError, match="bad text: expected valid Unicode"):
        ld.highlight("duck", "a\ud800")
    with pytest.raises(ld.InvalidInputError, match="highlight: bad pre: expected valid Unicode"):
        ld.highlight("duck", "duck", pre="\ud800")
    with pytest.raises(ld.InvalidInputError, match="snippet: bad gap: expected valid Unicode"):
        ld.snippet("duck", "duck", gap="\ud800")


def test_invalid_calls_name_the_argument() -> None:
    with pytest.raises(ld.WrongTypeError, match=r"bad query: expected str, or a query of .*, found int"):
        ld.highlight("duck", 5)  # type: ignore[call-overload]
    with pytest.raises(ld.WrongTypeError, match="highlight: pre: expected str, found 5 of type int"):
        ld.highlight("duck", "duck", pre=5)  # type: ignore[call-overload]
    with pytest.raises(ld.WrongTypeError, match=r"unknown argument 'stemm'; did you mean 'stem'\?"):
        ld.highlight("duck", "duck", stemm=True)  # type: ignore[call-overload]
    with pytest.raises(ld.WrongTypeError, match=r"snippet: words: expected int, found 2.5 of type float"):
        ld.snippet("duck", "duck", words=2.5)  # type: ignore[call-overload]
    with pytest.raises(ld.InvalidInputError, match="snippet: bad words: expected 1 or more, found 0"):
        ld.snippet("duck", "duck", words=0)
    with pytest.raises(ld.UnsupportedError, match="base_tokenizer 'icu' is not supported"):
        ld.snippet("duck", "duck", base_tokenizer="icu")


TEXTS = ["duck lake, lake duck", "the duck of the big lake", "dick"]


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ('"duck lake"', ["[duck] [lake], lake duck", "the duck of the big lake", "dick"]),
        ('"lake duck" big', ["duck lake, [lake] [duck]", "the duck of the [big] lake", "dick"]),
        (PhraseQuery("duck lake", "s", slop=3), ["[duck] [lake], [lake] duck", "the [duck] of the big [lake]", "dick"]),
        (MatchQuery("duck", "s", fuzziness=1), ["[duck] lake, lake [duck]", "the [duck] of the big lake", "[dick]"]),
        (PrefixQuery("la", "s"), ["duck [lake], [lake] duck", "the duck of the big [lake]", "dick"]),
        (
            BooleanQuery([(Occur.SHOULD, MatchQuery("big", "s")), (Occur.MUST_NOT, MatchQuery("duck", "s"))]),
            ["duck lake, lake duck", "the duck of the [big] lake", "dick"],
        ),
    ],
)
def test_phrases_and_queries_are_marked(query: str | FullTextQuery, marked: list[str]) -> None:
    assert ld.highlight(TEXTS, query, "[", "]").to_pylist() == marked
    assert ld.highlight(TEXTS[0], query, "[", "]") == marked[0]
    assert ld.snippet(TEXTS, query, 20, "[", "]").to_pylist() == marked
