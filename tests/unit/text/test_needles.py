from __future__ import annotations

import pytest

from lance_duck.text.needles import certain_words, trigrams_of_words


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("Hello World", ("hello", "world")),
        ("ab", ()),
        ("", ()),
        ("a-b-c", ()),
        ("abc abc", ("abc",)),
        ("Straße", ("strasse",)),
        ("Müller & Söhne", ("muller", "sohne")),
        ("日本語abc", ("abc",)),
        ("3.14159", ("14159",)),
    ],
)
def test_words_of_a_part(part: str, words: tuple[str, ...]) -> None:
    assert certain_words(part) == words


@pytest.mark.parametrize("character", "\u212aﬃ™½\u0301ĸŉ\uff21²")
def test_characters_with_ambiguous_case_mappings_end_a_word(character: str) -> None:
    assert certain_words(f"abc{character}def") == ("abc", "def")


def test_the_dot_of_a_capital_i_ends_a_word() -> None:
    assert certain_words("xyİstanbul") == ("xyi", "stanbul")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("Istanbul", ("stanbul",)),
        ("hospital", ("hospi", "tal")),
        ("VIVID", ()),
        ("KELVIN", ("kelvi",)),
        ("Müller", ("ller",)),
        ("\u017ftop", ("top",)),
    ],
)
def test_case_insensitive_words_end_at_i_and_accented_letters(part: str, words: tuple[str, ...]) -> None:
    assert certain_words(part, any_case=True) == words


def test_trigrams_of_words_ascend() -> None:
    assert trigrams_of_words(["zabc", "abc"]).tolist() == [11 * 1369 + 12 * 37 + 13, 36 * 1369 + 11 * 37 + 12]
    assert trigrams_of_words([]).tolist() == []
