"""Base tokenizers cut single texts as their references do."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.text import words
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tables import alphanumeric


@given(st.text(st.characters(max_codepoint=0x17F)))
def test_words_are_split_at_characters_outside_the_table(text: str) -> None:
    tokens = [token for token, _ in words.tokens_of_text(text, AnalyserParameters(max_token_length=None))]
    assert tokens == list(words._runs(text, alphanumeric()))


@pytest.mark.parametrize("tokenizer", ["simple", "whitespace"])
def test_every_character_is_split_like_in_the_reference(tokenizer: str) -> None:
    parameters = AnalyserParameters(base_tokenizer=tokenizer, max_token_length=None)
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    text = "".join(f"b{character}cd 7" for character in characters)
    cut = words.cut_texts(pa.array([text], pa.large_string()), parameters)
    assert [cut.words[i] for i in cut.ids.tolist()] == [token for token, _ in words.tokens_of_text(text, parameters)]


def test_the_byte_limit_applies_to_ngrams_but_not_to_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "_MOST_BYTES", 8192)
    long = pa.array([f"{i:04}" * 20 for i in range(1000)], pa.large_string())
    assert words.WordTable().number(long).tolist() == list(range(1000))
    raw = words.cut_texts(long, AnalyserParameters(base_tokenizer="raw", max_token_length=None))
    assert len(raw.words) == 1000
    ngrams = AnalyserParameters(base_tokenizer="ngram", min_ngram_length=3, max_ngram_length=60, max_token_length=None)
    with pytest.raises(InvalidInputError, match="too many long tokens"):
        words.cut_texts(long, ngrams)


def test_word_ids_are_stable_while_the_table_grows() -> None:
    table = words.WordTable()
    first = [f"word{i}" * (1 + i % 5) for i in range(3000)]
    assert table.number(pa.array(first, pa.large_string())).tolist() == list(range(3000))
    values = table.values()
    more = [f"more{i}" for i in range(9000)]
    numbers = table.number(pa.array([*more, *first], pa.large_string()))
    assert numbers.tolist() == [*range(3000, 12_000), *range(3000)]
    assert values.cast(pa.large_string()).to_pylist() == first
    assert table.values().cast(pa.large_string()).to_pylist() == table.strings() == first + more
    assert table.strings(11_999) == ["more8999"]
    assert len(table) == 12_000
