from __future__ import annotations

import pytest

import lance_duck as ld


def test_positions_start_at_the_first_token() -> None:
    assert ld.tokenize("the Cats and Dogs") == [ld.FtsToken("cat", 0), ld.FtsToken("dog", 2)]


def test_a_string_of_stop_words_has_no_tokens() -> None:
    assert ld.tokenize("and the or") == []


def test_invalid_calls_name_the_argument() -> None:
    with pytest.raises(ld.WrongTypeError, match=r"unknown argument 'stemm'; did you mean 'stem'?"):
        ld.tokenize("a", stemm=True)  # type: ignore[call-arg]
    with pytest.raises(ld.WrongTypeError, match="bad query: expected str, found int"):
        ld.tokenize(3)  # type: ignore[arg-type]
    with pytest.raises(ld.UnsupportedError, match="base_tokenizer 'icu' is not supported"):
        ld.tokenize("a", base_tokenizer="icu")
