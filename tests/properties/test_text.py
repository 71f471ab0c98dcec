"""The tokenizer kernels return the same tokens as the plain implementation."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import BASE_TOKENIZERS, LANGUAGES, AnalyserParameters
from lance_duck.text.tokens import Tokens

CHARACTERS = st.sampled_from("aabAB \t\n\x0b\0-_'.ßéİΣसि漢\u0301\u200b\xa0\u3000😀𐐀²") | st.characters(
    exclude_categories=["Cs"]
)
WORDS = st.sampled_from(
    ["the", "and", "Foxes", "größten", "others", "x" * 39, "x" * 40, "é" * 20, "12345678", "123456789"]
)
TEXTS = st.lists(st.none() | st.lists(WORDS | CHARACTERS, max_size=30).map("".join), max_size=8)
LENGTHS = st.integers(1, 12)


@st.composite
def parameters(draw: st.DrawFn) -> AnalyserParameters:
    fewest = draw(LENGTHS)
    return AnalyserParameters(
        base_tokenizer=draw(st.sampled_from(BASE_TOKENIZERS)),
        language=draw(st.sampled_from(LANGUAGES)),
        max_token_length=draw(st.none() | st.sampled_from([0, 1, 2, 9, 40])),
        lower_case=draw(st.booleans()),
        stem=draw(st.booleans()),
        remove_stop_words=draw(st.booleans()),
        custom_stop_words=draw(st.none() | st.just(("a", "fox"))),
        ascii_folding=draw(st.booleans()),
        min_ngram_length=fewest,
        max_ngram_length=fewest + draw(st.integers(0, 4)),
        prefix_only=draw(st.booleans()),
    )


def pairs(tokens: Tokens) -> list[list[tuple[str, int]]]:
    terms = [term.decode() for term in tokens.terms.to_pylist()]
    assert len(set(terms)) == len(terms)
    assert list(dict.fromkeys(tokens.term_ids.tolist())) == list(range(len(terms)))
    flat = [(terms[i], place) for i, place in zip(tokens.term_ids.tolist(), tokens.positions.tolist(), strict=True)]
    bounds = tokens.bounds.tolist()
    return [flat[begin:end] for begin, end in pairwise(bounds)]


@given(TEXTS, parameters())
def test_strings_analysed_together_have_the_same_tokens_as_one_by_one(
    texts: Any, parameters: AnalyserParameters
) -> None:
    analyser = Analyser(parameters)
    plain = [[(token.text, token.position) for token in analyser.terms_of(text or "")] for text in texts]
    plain = [[] if text is None else tokens for text, tokens in zip(texts, plain, strict=True)]
    assert pairs(analyser.analyse(pa.array(texts, pa.string()))) == plain


@given(st.lists(st.none() | TEXTS, max_size=4), parameters())
def test_a_list_has_the_tokens_of_its_elements_in_order(rows: Any, parameters: AnalyserParameters) -> None:
    analyser = Analyser(parameters)
    together = pairs(analyser.analyse(pa.array(rows, pa.list_(pa.string()))))
    alone = [pairs(analyser.analyse(pa.array(row or [], pa.string()))) for row in rows]
    assert [[term for term, _ in row] for row in together] == [[t for e in row for t, _ in e] for row in alone]


def test_a_small_table_that_grows_numbers_words_like_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [f"{i % 700}-{i * 7919 % 1301}" for i in range(5_000)]
    texts = pa.array([" ".join(words[i : i + 7]) for i in range(0, 5_000, 7)])
    for base in ("simple", "ngram"):
        analyser = Analyser(AnalyserParameters(base_tokenizer=base, max_ngram_length=5))
        large = analyser.analyse(texts)
        monkeypatch.setattr("lance_duck.text.words._FIRST_WORDS", 1)
        monkeypatch.setattr("lance_duck.text.words._FIRST_TOKENS", 1)
        small = analyser.analyse(texts)
        monkeypatch.undo()
        assert small.terms.equals(large.terms)
        assert small.term_ids.tolist() == large.term_ids.tolist()
        assert small.positions.tolist() == large.positions.tolist()
        assert small.bounds.tolist() == large.bounds.tolist()
