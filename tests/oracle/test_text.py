"""The analyser of full-text indexes: `tokenize` and `Analyser` give what pylance's `tokenize` gives."""

# ruff: noqa: RUF001  letters that look alike are what this is about

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.query import PhraseQuery
from oracle.cases import Cases
from oracle.text_tables import CHARACTERS, DATA, alphanumeric, changes, own_words, short_words, stop_words

import lance_duck as ld
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import LANGUAGES, AnalyserParameters

CASE_KIND = "tokens"
Pairs = list[tuple[str, int]]
LANGUAGE_FREE = {"stem": False, "remove_stop_words": False}
HOSTILE = [
    "",
    " ",
    "the and of",
    "The quick brown Foxes don't jump; 3.14 snake_case a-b x@y.z",
    "x" * 38 + " " + "y" * 39 + " " + "z" * 40 + " " + "é" * 19 + "a " + "é" * 20 + " end",
    "ꜩ" * 13 + " " + "ꜩ" * 13 + "a " + "İ" * 19 + " " + "ﷺ" * 13,
    "a\0b\0 c\r\nd\te\x0bf\x0cg\x85h\xa0i\u2028j\u3000k",
    "a\u200bb c\u200dd e\ufefff \u0301a e\u0301 \u0301",
    "ΟΔΥΣΣΕΥΣ ΣΑΣ İstanbul ISPARTA ẞ ß ǅ Ǆ ŉ ΐ",
    "ﬁn ﬀ Æther Łódź Øre Þorn Ħal ĸ ½ ² ① ㎏ ℃ №",
    "हिन्दी में தமிழ் ภาษาไทย 漢字かな 한국어 שָׁלוֹם العَرَبِيَّة",
    "😀👩‍👩‍👧 𝒳𝓎𝔷 𐐀𐐨 🇫🇷 \U0010ffff \U000e0041",
    "others during und nicht les pas",
    "running RUNNING Running ran",
    "’tis l’homme d'accord it's",
    "a" * 500,
]


def theirs(text: str, **options: Any) -> Pairs:
    return [(token.text, token.position) for token in lance.tokenize(text, **options)]


def ours(text: str, **options: Any) -> Pairs:
    return [(token.text, token.position) for token in ld.tokenize(text, **options)]


def by_kernel(text: str, **options: Any) -> Pairs:
    """Return tokens as an index build has them, positions from the first one."""
    tokens = Analyser(AnalyserParameters.from_arguments(options)).analyse(pa.array([text]))
    terms = [term.decode() for term in tokens.terms.to_pylist()]
    positions = (tokens.positions - tokens.positions[:1]).tolist()
    return [(terms[number], position) for number, position in zip(tokens.term_ids.tolist(), positions, strict=True)]


def words(seed: int, size: int) -> list[str]:
    """Return the stop words of all languages, and combinations of parts of two words."""
    random = Random(seed)
    stems = sorted(own_words())
    pairs = [(random.choice(stems), random.choice(stems)) for _ in range(size)]
    return stems + [a[: random.randint(0, len(a))] + b[random.randint(0, len(b)) :] for a, b in pairs]


@pytest.mark.parametrize("base", ["simple", pytest.param("whitespace", marks=pytest.mark.slow)])
def test_each_character_is_split_lowercased_and_folded_like_pylance(base: str, cases: Cases) -> None:
    text = " ".join(CHARACTERS)
    assert by_kernel(text, base_tokenizer=base, **LANGUAGE_FREE) == theirs(text, base_tokenizer=base, **LANGUAGE_FREE)
    cases.count += 1


@pytest.mark.slow
@pytest.mark.parametrize("base", ["simple", "whitespace"])
@pytest.mark.parametrize("between", ["", "x", "x ", "é"])
def test_characters_are_tokenized_independently_of_their_neighbours(base: str, between: str, cases: Cases) -> None:
    options = {"base_tokenizer": base, "max_token_length": None, **LANGUAGE_FREE}
    text = between.join(CHARACTERS)
    expected = theirs(text, **options)
    assert by_kernel(text, **options) == expected
    assert ours(text, **options) == expected
    cases.count += 1


@pytest.mark.slow
def test_character_tables_equal_those_of_pylance() -> None:
    assert (DATA / "alphanumeric.txt").read_text("utf-8") == alphanumeric()
    for step in ("lower_case", "ascii_folding"):
        assert (DATA / f"{step}.txt").read_text("utf-8") == changes(step)


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_words_equal_those_of_pylance(language: str, cases: Cases) -> None:
    candidates = own_words()
    listed = (DATA / "stop_words" / f"{language.lower()}.txt").read_text("utf-8")
    assert listed == stop_words(language, candidates)
    cases.count += 1


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_short_stop_word_is_missing(language: str) -> None:
    known = (DATA / "stop_words" / f"{language.lower()}.txt").read_text("utf-8").split()
    assert set(stop_words(language, short_words()).split()) <= set(known)


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_have_the_same_stems_as_in_pylance(language: str, cases: Cases) -> None:
    text = " ".join(words(LANGUAGES.index(language), 2_000))
    for options in ({}, {"remove_stop_words": False}, {"stem": False}, {"ascii_folding": False}):
        assert by_kernel(text, language=language, **options) == theirs(text, language=language, **options)
    cases.count += 4


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_many_words_have_the_same_stems_as_in_pylance(language: str, cases: Cases) -> None:
    text = " ".join(words(100 + LANGUAGES.index(language), 100_000))
    for base, shown in product(("simple", "whitespace"), (text, text.upper(), text.title())):
        options = {"language": language, "base_tokenizer": base}
        assert by_kernel(shown, **options) == theirs(shown, **options)
    cases.count += 6


@pytest.mark.parametrize("base", ["simple", "whitespace", "ngram"])
def test_documents_have_the_same_tokens_as_in_pylance(base: str, cases: Cases) -> None:
    for name in ("README.md", "ARCHITECTURE.md", "LICENSE"):
        text = (Path(__file__).parents[2] / name).read_text("utf-8")
        for language in ("English", "German", "Tamil"):
            options = {"base_tokenizer": base, "language": language}
            assert by_kernel(text, **options) == ours(text, **options) == theirs(text, **options)
            cases.count += 1


FLAGS = [
    dict(zip(("lower_case", "stem", "remove_stop_words", "ascii_folding"), values, strict=True))
    for values in product([True, False], repeat=4)
]
LIMITS: list[dict[str, Any]] = [{}, {"max_token_length": None}, {"max_token_length": 0}, {"max_token_length": 3}]
LISTS: list[dict[str, Any]] = [{}, {"custom_stop_words": ["the", "fox", "running"]}, {"custom_stop_words": []}]
BASES: list[dict[str, Any]] = [
    {"base_tokenizer": "simple"},
    {"base_tokenizer": "whitespace"},
    {"base_tokenizer": "raw"},
    {"base_tokenizer": "ngram"},
    {"base_tokenizer": "ngram", "min_ngram_length": 1, "max_ngram_length": 4},
    {"base_tokenizer": "ngram", "min_ngram_length": 2, "max_ngram_length": 5, "prefix_only": True},
]


def combinations(limits: Iterable[dict[str, Any]], lists: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [base | flags | limit | words for base, flags, limit, words in product(BASES, FLAGS, limits, lists)]


def assert_alike(options: dict[str, Any], cases: Cases) -> None:
    for text in HOSTILE:
        expected = theirs(text, **options)
        assert ours(text, **options) == expected, (text[:40], options)
        assert by_kernel(text, **options) == expected, (text[:40], options)
    cases.count += len(HOSTILE)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_hostile_strings_have_the_same_tokens_with_default_settings(base: dict[str, Any], cases: Cases) -> None:
    for limit in LIMITS:
        assert_alike(base | limit, cases)


def test_hostile_strings_have_the_same_tokens_with_each_filter(cases: Cases) -> None:
    random = Random(3)
    for options in random.sample(combinations(LIMITS, LISTS), 40):
        assert_alike(options | {"language": random.choice(LANGUAGES)}, cases)


@pytest.mark.slow
@pytest.mark.parametrize("base", BASES, ids=str)
def test_hostile_strings_have_the_same_tokens_with_all_parameters(base: dict[str, Any], cases: Cases) -> None:
    random = Random(4)
    for options in combinations(LIMITS, LISTS):
        if options | base == options:
            assert_alike(options | {"language": random.choice(LANGUAGES)}, cases)


WRONG: list[dict[str, Any]] = [
    {"unknown": 1},
    {"language": "Klingon"},
    {"language": "english"},
    {"base_tokenizer": "simpl"},
    {"base_tokenizer": "Simple"},
    {"base_tokenizer": "icu/words"},
    {"base_tokenizer": "jieba/default"},
    {"base_tokenizer": "lindera/ipadic"},
    {"base_tokenizer": "ngram", "min_ngram_length": 0},
    {"base_tokenizer": "ngram", "min_ngram_length": 4},
    {"analyzer": "unknown"},
    {"analyzer": "code", "base_tokenizer": "simple"},
    {"analyzer": "text", "base_tokenizer": "code"},
    {"split_identifiers": True},
    {"max_token_length": -1},
    {"max_token_length": 3.5},
    {"stem": 1},
    {"custom_stop_words": "the"},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_invalid_tokenizer_options_are_rejected_like_pylance(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        lance.tokenize("a text", **options)
    with pytest.raises((ld.InvalidInputError, ld.UnsupportedError)):
        ld.tokenize("a text", **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"base_tokenizer": "ngram", "min_ngram_length": 2, "prefix_only": True},
        {"base_tokenizer": "code", "split_identifiers": True},
        {"language": "German", "max_token_length": None, "custom_stop_words": ["ä", '"'], "with_position": True},
    ],
    ids=str,
)
def test_a_segment_stores_the_same_parameters(options: dict[str, Any], tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"s": ["a text"]}), str(tmp_path / "t.lance"))
    dataset.create_scalar_index("s", "INVERTED", **options)
    (file,) = (tmp_path / "t.lance" / "_indices").glob("*/metadata.lance")
    stored = lance.file.LanceFileReader(str(file)).metadata().schema.metadata[b"params"].decode()
    parameters = AnalyserParameters.from_arguments(options)
    assert parameters.to_json() == stored
    assert AnalyserParameters.from_json(stored) == parameters


@pytest.mark.parametrize(
    "row",
    [["alpha the", "beta"], ["alpha", "the beta"], ["alpha", None, "", "beta"], ["alpha the", None, "the the", "beta"]],
    ids=str,
)
def test_token_positions_continue_across_list_elements(row: list[str | None], tmp_path: Path) -> None:
    texts = pa.array([row], pa.list_(pa.string()))
    dataset = lance.write_dataset(pa.table({"s": texts}), str(tmp_path / "t.lance"))
    dataset.create_scalar_index("s", "INVERTED", with_position=True)
    first, second = Analyser().analyse(texts).positions.tolist()
    for slop in range(5):
        rows = dataset.to_table(full_text_query=PhraseQuery("alpha beta", "s", slop=slop)).num_rows
        assert rows == int(second - first - 1 <= slop)
