from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels.texts.trigrams import BREAK, TRIGRAMS
from lance_duck.text.needles import certain_words, trigrams_of_words
from lance_duck.text.trigrams import classes_of, has_trigrams, texts_by_trigram, trigrams_of

ALPHABET = "abcXY019 _éßİ\u212a™㎯ﷺ\u0301\u0391Ж日😀"
TEXTS = st.lists(st.none() | st.text(ALPHABET, max_size=12) | st.text(max_size=6), max_size=8)


def number(first: int, second: int, third: int) -> int:
    return (first * 37 + second) * 37 + third


def grouped(texts: pa.Array) -> list[set[int]]:
    groups = texts_by_trigram(texts)
    found: list[set[int]] = [set() for _ in range(len(texts))]
    for place, trigram in enumerate(groups.trigrams.tolist()):
        members = groups.texts[groups.bounds[place] : groups.bounds[place + 1]].tolist()
        assert members == sorted(set(members))
        for member in members:
            found[member].add(trigram)
    return found


def test_digits_and_letters_are_numbered() -> None:
    assert trigrams_of("09a") == {number(1, 10, 11)}
    assert trigrams_of("xyz!abc") == {number(34, 35, 36), number(11, 12, 13)}
    assert trigrams_of("AbC") == trigrams_of("abc")
    assert trigrams_of("ab_cd ef") == set()


@pytest.mark.parametrize(
    ("character", "letters"),
    [
        ("é", "e"),
        ("ß", "ss"),
        ("Æ", "ae"),
        ("\u212a", "k"),
        ("\u017f", "s"),
        ("ﬃ", "ffi"),
        ("㎯", "rads2"),
    ],
)
def test_characters_are_lower_cased_and_folded(character: str, letters: str) -> None:
    assert classes_of(character) == [classes_of(letter)[0] for letter in letters]


def test_character_classes_do_not_depend_on_neighbours() -> None:
    assert classes_of("İ") == [classes_of("i")[0], BREAK]
    assert classes_of("\u0301") == [BREAK]
    assert trigrams_of("ae\u0301b") == set()
    assert trigrams_of("aéb") == {number(11, 15, 12)}


def test_capitals_without_a_folded_form_have_separate_classes() -> None:
    assert classes_of("™") == [254, 247]
    assert classes_of("ⱽ") == [0]
    assert (
        max(each for point in range(0x110000) if not 0xD800 <= point < 0xE000 for each in classes_of(chr(point))) < 256
    )


@given(texts=TEXTS)
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_kernel_trigrams_equal_the_reference(type_: pa.DataType, texts: list[str | None]) -> None:
    expected = [set() if text is None else trigrams_of(text) for text in texts]
    assert grouped(pa.array(texts, type_)) == expected
    assert grouped(pa.array(["xyz", *texts], type_)[1:]) == expected


def test_many_strings_equal_the_reference() -> None:
    rng = random.Random(5)
    texts = ["".join(rng.choices("abcde ", k=rng.randrange(40))) for _ in range(3000)]
    assert grouped(pa.array(texts)) == [trigrams_of(text) for text in texts]


def test_invalid_utf8_ends_a_trigram_run() -> None:
    broken = [b"ab\xffcd", b"abc\xe2\x82", b"\xc3abc", b"ab\xc3\xa9", b"abc\xf8\x80"]
    array = pa.array(broken, pa.large_binary())
    texts = pa.Array.from_buffers(pa.large_string(), len(broken), array.buffers())
    expected = [set(), trigrams_of("abc"), trigrams_of("abc"), trigrams_of("abé"), trigrams_of("abc")]
    assert grouped(texts) == expected


@given(texts=TEXTS, needle=st.text(ALPHABET, min_size=3, max_size=5))
def test_has_trigrams_equals_the_reference(texts: list[str | None], needle: str) -> None:
    trigrams = np.array(sorted(trigrams_of(needle)), np.uint32)
    expected = [text is not None and trigrams_of(needle) <= trigrams_of(text) for text in texts]
    if len(trigrams):
        assert has_trigrams(pa.array(texts, pa.string()), trigrams).tolist() == expected


@given(
    before=st.text(ALPHABET, max_size=5),
    part=st.text(max_size=8) | st.text(ALPHABET, max_size=8),
    after=st.text(max_size=3),
)
def test_a_string_contains_the_trigrams_of_its_substrings(before: str, part: str, after: str) -> None:
    text = before + part + after
    assert trigrams_of(part) <= trigrams_of(text)
    assert set(trigrams_of_words(certain_words(part)).tolist()) <= trigrams_of(text)


def test_numbers_fit_their_tables() -> None:
    assert number(255, 255, 255) == TRIGRAMS - 1
