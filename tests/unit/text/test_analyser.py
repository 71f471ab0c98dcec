from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.text.analyser import Analyser
from lance_duck.text.filters import STEMMER
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tokens import Tokens

PLAIN = {"lower_case": False, "stem": False, "remove_stop_words": False, "ascii_folding": False}


def analyser(**arguments: object) -> Analyser:
    return Analyser(AnalyserParameters.from_arguments(arguments))


def listed(tokens: Tokens) -> list[list[tuple[str, int]]]:
    terms = [term.decode() for term in tokens.terms.to_pylist()]
    pairs = [(terms[i], p) for i, p in zip(tokens.term_ids.tolist(), tokens.positions.tolist(), strict=True)]
    bounds = tokens.bounds.tolist()
    return [pairs[a:b] for a, b in pairwise(bounds)]


def terms(text: str, **arguments: object) -> list[str]:
    return [token.text for token in analyser(**arguments).terms_of(text)]


def test_a_string_becomes_terms_with_positions() -> None:
    tokens = analyser().analyse(pa.array(["The quick brown Foxes", "foxes don't jump", None, ""]))
    assert tokens.num_texts == 4
    assert tokens.terms.type == pa.large_binary()
    assert tokens.terms.to_pylist() == [b"quick", b"brown", b"fox", b"don", b"t", b"jump"]
    assert tokens.term_ids.tolist() == [0, 1, 2, 2, 3, 4, 5]
    assert tokens.positions.tolist() == [1, 2, 3, 0, 1, 2, 3]
    assert tokens.bounds.tolist() == [0, 3, 7, 7, 7]
    assert [array.dtype for array in (tokens.term_ids, tokens.positions, tokens.bounds)] == [
        np.uint32,
        np.uint32,
        np.int64,
    ]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_string_type_gives_the_same_tokens(type_: pa.DataType) -> None:
    array = pa.array(["x", "a b", None, "c a"], type_)
    want = [[("a", 0), ("b", 1)], [], [("c", 0), ("a", 1)]]
    assert listed(analyser(**PLAIN).analyse(array.slice(1))) == want
    assert listed(analyser(**PLAIN).analyse(pa.chunked_array([array.slice(1, 1), array.slice(2)]))) == want
    assert listed(analyser(**PLAIN).analyse(pa.chunked_array([], type_))) == []
    assert listed(analyser(**PLAIN).analyse(array.slice(2, 1))) == [[]]
    assert listed(analyser(**PLAIN).analyse(array.slice(0, 0))) == []


@pytest.mark.parametrize("list_", [pa.list_, pa.large_list, lambda type_: pa.list_(type_, 3)])
def test_positions_continue_across_list_elements(list_: Any) -> None:
    rows = [["no", "no", "no"], ["a the", None, "b"], None, ["", "c", "c"]]
    tokens = analyser().analyse(pa.array(rows, list_(pa.string())).slice(1))
    assert listed(tokens) == [[("b", 2)], [], [("c", 0), ("c", 1)]]


@pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view()])
def test_lists_of_every_string_type_give_the_same_tokens(type_: pa.DataType) -> None:
    rows = pa.chunked_array([pa.array([["a", "b"]], pa.list_(type_)), pa.array([None, [None, "a"]], pa.list_(type_))])
    assert listed(analyser(**PLAIN).analyse(rows)) == [[("a", 0), ("b", 1)], [], [("a", 0)]]


def test_threads_share_an_analyser() -> None:
    texts = pa.array([f"running foxes {i} the {i * 7}" for i in range(2_000)])
    shared = analyser()
    want = listed(shared.analyse(texts))
    with ThreadPoolExecutor(4) as pool:
        assert all(listed(tokens) == want for tokens in pool.map(lambda _: shared.analyse(texts), range(8)))


def test_strings_below_nulls_are_not_read() -> None:
    offsets = pa.array([0, 1, 3, 4], pa.int32()).buffers()[1]
    texts = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"axxb"), pa.py_buffer(b"\x05"))
    assert listed(analyser(**PLAIN).analyse(texts)) == [[("a", 0)], [], [("b", 0)]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("don't stop: 3.14", ["don", "t", "stop", "3", "14"]),
        ("snake_case a-b x@y.z", ["snake", "case", "a", "b", "x", "y", "z"]),
        ("हिन्दी 漢字かな ⓐ²", ["हिन", "दी", "漢字かな", "ⓐ²"]),
        ("a\0b\r\nc\u200bd", ["a", "b", "c", "d"]),
        ("𝒳𐐀😀x", ["𝒳𐐀", "x"]),
    ],
)
def test_simple_tokenizer_keeps_letters_marks_and_numbers(text: str, words: Any) -> None:
    assert terms(text, **PLAIN) == words
    assert listed(analyser(**PLAIN).analyse(pa.array([text]))) == [[(w, i) for i, w in enumerate(words)]]


def test_whitespace_tokenizer_splits_at_ascii_whitespace() -> None:
    words = ["a", "b", "c\x0bd", "e", "f\x85g\xa0h\u3000i"]
    text = "a\tb\nc\x0bd\x0ce\r f\x85g\xa0h\u3000i "
    assert terms(text, base_tokenizer="whitespace", **PLAIN) == words
    assert listed(analyser(base_tokenizer="whitespace", **PLAIN).analyse(pa.array([text]))) == [
        [(w, i) for i, w in enumerate(words)]
    ]


def test_raw_tokenizer_keeps_the_whole_string_even_if_empty() -> None:
    tokens = analyser(base_tokenizer="raw", **PLAIN).analyse(pa.array(["a b", "", None, "a b", "x" * 40]))
    assert listed(tokens) == [[("a b", 0)], [("", 0)], [], [("a b", 0)], []]
    assert tokens.terms.to_pylist() == [b"a b", b""]


def test_ngrams_are_ordered_by_start_and_have_position_0() -> None:
    tokens = analyser(base_tokenizer="ngram", min_ngram_length=2, max_ngram_length=3).analyse(pa.array(["Aé c", "a"]))
    grams = ["ae", "ae ", "e ", "e c", " c"]
    assert listed(tokens) == [[(gram, 0) for gram in grams], []]
    first = analyser(base_tokenizer="ngram", min_ngram_length=2, max_ngram_length=3, prefix_only=True)
    assert listed(first.analyse(pa.array(["Aé c", ""]))) == [[("ae", 0), ("ae ", 0)], []]


def test_ngrams_above_the_byte_limit_are_dropped() -> None:
    some = analyser(base_tokenizer="ngram", min_ngram_length=1, max_ngram_length=2, max_token_length=3, **PLAIN)
    assert listed(some.analyse(pa.array(["aéb"]))) == [[("a", 0), ("é", 0), ("b", 0)]]


@pytest.mark.parametrize(("size", "kept"), [(39, True), (40, False)])
def test_long_tokens_are_dropped_and_leave_a_position_gap(size: int, kept: bool) -> None:
    text = "x" * size + " y"
    want = [("x" * size, 0), ("y", 1)] if kept else [("y", 1)]
    assert listed(analyser(**PLAIN).analyse(pa.array([text]))) == [want]
    assert [(token.text, token.position) for token in analyser(**PLAIN).terms_of(text)] == want


def test_without_a_limit_long_tokens_are_kept() -> None:
    text = "x" * 100_000
    assert listed(analyser(max_token_length=None, **PLAIN).analyse(pa.array([text]))) == [[(text, 0)]]


def test_lower_case_maps_characters_one_by_one() -> None:
    assert terms("ΟΔΥΣΣΕΥΣ İ", **{**PLAIN, "lower_case": True}) == ["οδυσσευσ", "i̇"]


def test_folding_keeps_characters_without_an_ascii_form() -> None:
    words = ["AEther", "ss", "Lodz", "Ελλάδα", "ой", "fi"]
    assert terms("Æther ß Łódź Ελλάδα ой ﬁ", **{**PLAIN, "ascii_folding": True}) == words


def test_stop_words_are_compared_with_stems() -> None:
    assert terms("others during and") == ["dure"]
    assert terms("others during and", stem=False) == ["others"]
    assert terms("foxes and hens", custom_stop_words=["fox", "hens"]) == ["and", "hen"]
    assert terms("and or", custom_stop_words=[]) == ["and", "or"]


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("German", "Die Häuser und nicht", ["haus", "nicht"]),
        ("French", "les chevaux ne mangeaient pas", ["cheval", "ne", "mang", "pas"]),
        ("Dutch", "lopende", ["loop"]),
        ("Russian", "и книги", ["книг"]),
        ("Turkish", "kitaplar ve", ["kitap"]),
    ],
)
def test_words_of_languages_are_stemmed(language: str, text: str, words: Any) -> None:
    assert terms(text, language=language) == words


def test_tables_grow_with_many_words_and_tokens() -> None:
    words = [f"w{i}" for i in range(20_000)]
    text = pa.array([" ".join(words), " ".join(reversed(words))])
    tokens = analyser(**PLAIN).analyse(text)
    assert tokens.terms.to_pylist() == [word.encode() for word in words]
    assert tokens.term_ids.tolist() == [*range(20_000), *range(19_999, -1, -1)]


def test_other_types_are_rejected() -> None:
    with pytest.raises(WrongTypeError, match="expected string, large_string, string_view, or a list of them"):
        analyser().analyse(pa.array([1]))
    with pytest.raises(WrongTypeError, match="found list<item: int64>"):
        analyser().analyse(pa.array([[1]]))


def test_a_lone_surrogate_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match=r"bad text: expected valid Unicode, found 'a \\ud800'"):
        analyser().terms_of("a \ud800")


def test_invalid_utf8_is_rejected() -> None:
    texts = pa.array([b"a\xff"], pa.binary())
    broken = pa.StringArray.from_buffers(1, texts.buffers()[1], texts.buffers()[2])
    with pytest.raises(InvalidInputError, match="expected UTF-8"):
        analyser().analyse(broken)


def test_the_stemmer_version_is_known() -> None:
    assert re.fullmatch(r"Snowball, PyStemmer 3\.1\.\d+", STEMMER)
