"""Base tokenizers cut single texts as their references do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lance_duck.text import words
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tables import alphanumeric


@given(st.text(st.characters(max_codepoint=0x17F)))
def test_letters_and_digits_are_cut_as_by_their_table(text: str) -> None:
    tokens = [token for token, _ in words.tokens_of_text(text, AnalyserParameters(max_token_length=None))]
    assert tokens == list(words._runs(text, alphanumeric()))
