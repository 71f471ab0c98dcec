from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.text.analyser import Analyser
from lance_duck.text.highlight import TokenSpans, highlight, snippet, term_spans
from lance_duck.text.parameters import AnalyserParameters

ENGLISH = Analyser()
NGRAMS = Analyser(AnalyserParameters.from_arguments({"base_tokenizer": "ngram", "max_ngram_length": 4}))
RAW = Analyser(AnalyserParameters.from_arguments({"base_tokenizer": "raw", "stem": False}))
LETTERS = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
PLAIN = Analyser(AnalyserParameters(stem=False, remove_stop_words=False))


def listed(spans: TokenSpans) -> list[list[tuple[int, int, int]]]:
    flat = list(zip(spans.begins.tolist(), spans.ends.tolist(), spans.terms.tolist(), strict=True))
    bounds = spans.bounds.tolist()
    return [flat[begin:end] for begin, end in pairwise(bounds)]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_spans_are_byte_ranges_of_the_original_string(type_: pa.DataType) -> None:
    texts = pa.array(["no", "Füchse, FOXES and a fox", None, "", "the hen"], type_).slice(1)
    spans = term_spans(texts, ["hen", "fox", "fuchs"], Analyser())
    assert listed(spans) == [[(9, 14, 1), (21, 24, 1)], [], [], [(4, 7, 0)]]
    assert listed(term_spans(pa.chunked_array([texts, texts.slice(3)]), ["hen"], ENGLISH))[3:] == [[(4, 7, 0)]] * 2


def test_a_repeated_term_counts_once() -> None:
    assert listed(term_spans(pa.array(["b a"]), ["a", "b", "a"], PLAIN)) == [[(0, 1, 1), (2, 3, 0)]]


def test_query_tokens_are_marked_in_the_string() -> None:
    texts = pa.array(["The quick Foxes' den.", None, "no", "fox", ""])
    terms = [token.text for token in ENGLISH.terms_of("fox dens")]
    assert highlight(texts, terms, ENGLISH).to_pylist() == [
        "The quick <b>Foxes</b>' <b>den</b>.",
        None,
        "no",
        "<b>fox</b>",
        "",
    ]


def test_marks_may_be_any_string_or_empty() -> None:
    texts = pa.array(["äh fox öh", "fox"])
    assert highlight(texts, ["fox"], ENGLISH, "»", "«").to_pylist() == ["äh »fox« öh", "»fox«"]
    assert highlight(texts, ["fox"], ENGLISH, "", "").to_pylist() == ["äh fox öh", "fox"]
    assert highlight(texts, [], ENGLISH).to_pylist() == ["äh fox öh", "fox"]
    assert highlight(pa.array([], pa.string()), ["fox"], ENGLISH).to_pylist() == []


def test_words_that_fold_or_stem_to_a_term_are_marked() -> None:
    folded = highlight(pa.array(["Café \uff26\uff2f\uff38 running"]), ["cafe", "fox", "run"], ENGLISH)
    assert folded.to_pylist() == ["<b>Café</b> <b>\uff26\uff2f\uff38</b> <b>running</b>"]


def test_overlapping_ngrams_are_marked_together() -> None:
    texts = pa.array(["abcdef abc", "bcd"])
    assert highlight(texts, ["abc", "bcd", "bcde"], NGRAMS).to_pylist() == ["<b>abcde</b>f <b>abc</b>", "<b>bcd</b>"]
    assert highlight(texts, ["abc", "def"], NGRAMS).to_pylist() == ["<b>abcdef</b> <b>abc</b>", "bcd"]


def test_a_raw_token_is_marked_as_a_whole() -> None:
    texts = pa.array(["New York", None, "York", "x" * 50])
    assert highlight(texts, ["new york"], RAW).to_pylist() == ["<b>New York</b>", None, "York", "x" * 50]


def test_tokens_above_the_limit_are_not_marked() -> None:
    assert highlight(pa.array(["x" * 40 + " fox"]), ["fox"], ENGLISH).to_pylist() == ["x" * 40 + " <b>fox</b>"]


@pytest.mark.parametrize(
    ("terms", "words", "part"),
    [
        (["m"], 5, "…k l <b>m</b> n o…"),
        (["a"], 3, "<b>a</b> b c…"),
        (["z"], 3, "…x y <b>z</b>"),
        (["y"], 4, "…w x <b>y</b> z"),
        (["c", "t", "u"], 4, "…s <b>t</b> <b>u</b> v…"),
        (["c", "g"], 5, "…<b>c</b> d e f <b>g</b>…"),
        (["c", "g"], 4, "…b <b>c</b> d e…"),
        (["none"], 3, "a b c…"),
        ([], 1, "a…"),
        (["b"], 26, LETTERS.replace("b", "<b>b</b>")),
        (["b"], 99, LETTERS.replace("b", "<b>b</b>")),
    ],
)
def test_a_snippet_centres_the_most_terms(terms: list[str], words: int, part: str) -> None:
    assert snippet(pa.array([LETTERS]), terms, PLAIN, words=words).to_pylist() == [part]


def test_different_terms_count_more_than_many_tokens_of_one() -> None:
    texts = pa.array(["a a a x x x x b a x x x x"])
    assert snippet(texts, ["a", "b"], PLAIN, words=3).to_pylist() == ["…<b>b</b> <b>a</b> x…"]


def test_snippets_keep_nulls_and_surrounding_punctuation() -> None:
    texts = pa.array(["(fox) x y!", None, "", "¿¡"])
    assert snippet(texts, ["fox"], ENGLISH).to_pylist() == ["(<b>fox</b>) x y!", None, "", "¿¡"]
    assert snippet(texts, ["fox"], ENGLISH, "[", "]", words=2, gap=" ...").to_pylist()[0] == "([fox]) x ..."


def test_snippets_of_ngrams_count_words() -> None:
    texts = pa.array(["one two three four five six"])
    assert snippet(texts, ["hre"], NGRAMS, words=3).to_pylist() == ["…two t<b>hre</b>e four…"]


@given(st.lists(st.none() | st.text("ab é.", max_size=12), max_size=5), st.sampled_from([ENGLISH, NGRAMS, RAW, PLAIN]))
def test_removing_the_marks_restores_the_string(texts: Any, analyser: Analyser) -> None:
    array = pa.array(texts, pa.string())
    terms = ["a", "ab", "e", "aba", "bab", "a b"]
    marked = highlight(array, terms, analyser, "<", ">").to_pylist()
    assert [text and text.replace("<", "").replace(">", "") for text in marked] == texts
    assert snippet(array, terms, analyser, "<", ">", words=99).to_pylist() == marked
    for text, shown in zip(texts, snippet(array, terms, analyser, "", "", words=2).to_pylist(), strict=True):
        assert (text is None and shown is None) or shown.strip("…") in text


def test_invalid_calls_are_rejected() -> None:
    with pytest.raises(
        WrongTypeError, match="highlight: the strings have the wrong type: expected string, large_string"
    ):
        highlight(pa.array([1]), ["fox"], ENGLISH)
    with pytest.raises(InvalidInputError, match="snippet: bad words: expected 1 or more, found 0"):
        snippet(pa.array(["a"]), ["fox"], ENGLISH, words=0)
