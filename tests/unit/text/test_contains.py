"""Words as they are written, and whether texts have them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.text.contains import contains_tokens, written_words

TEXTS = ["a-puppy_x", "", "the dog", "dogs", "don't", "Dog cat dog", "Straße Çay"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("dog", [2, 5]),
        ("Dog", [5]),
        ("cat, dog!", [5]),
        ("puppy a", [0]),
        ("don t", [4]),
        ("the", [2]),
        ("strasse", []),
        ("Straße", [6]),
        ("", range(7)),
        ("!! _", range(7)),
    ],
)
def test_contains_tokens_requires_every_word_as_written(words: str, expected: list[int]) -> None:
    answer = contains_tokens(pa.array(TEXTS), pa.chunked_array([[words] * len(TEXTS)]))
    assert [i for i, each in enumerate(answer.to_pylist()) if each] == list(expected)


def test_each_row_is_compared_with_its_words() -> None:
    words = ["x", "a", "dog the", "dog", "", "cat Dog", "Çay tea"]
    plain = [set(written_words(word)) <= set(written_words(text)) for word, text in zip(words, TEXTS, strict=True)]
    assert contains_tokens(pa.array(TEXTS), pa.array(words)).to_pylist() == plain
    assert plain == [True, False, True, False, True, True, False]


def test_empty_arrays_give_empty_results() -> None:
    assert contains_tokens(pa.array([], pa.string()), pa.array([], pa.string())).to_pylist() == []
