from __future__ import annotations

import json
from typing import Any

import pytest

from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserParameters

STORED = (
    '{"lance_tokenizer":"text","base_tokenizer":"simple","language":"English","with_position":false,'
    '"max_token_length":40,"lower_case":true,"stem":true,"remove_stop_words":true,"custom_stop_words":null,'
    '"ascii_folding":true,"min_ngram_length":3,"max_ngram_length":3,"prefix_only":false,"block_size":128,'
    '"split_identifiers":false,"split_on_numerics":false,"preserve_original":false,"index_operators":false}'
)


def test_default_parameters_are_stored_like_in_pylance() -> None:
    assert AnalyserParameters.from_arguments({}).to_json() == STORED


def test_parameters_round_trip_through_json() -> None:
    parameters = AnalyserParameters.from_arguments(
        {"language": "German", "max_token_length": None, "custom_stop_words": ["grün"], "with_position": True}
    )
    assert parameters.custom_stop_words == ("grün",)
    assert AnalyserParameters.from_json(parameters.to_json()) == parameters


def test_unknown_keys_are_ignored_and_missing_keys_have_defaults() -> None:
    parameters = AnalyserParameters.from_json('{"language": "Dutch", "of_the_future": {"x": 1}}')
    assert parameters == AnalyserParameters(language="Dutch")


@pytest.mark.parametrize("base", ["ngram", "code"])
def test_ngram_and_code_tokenizers_do_not_stem_or_remove_stop_words(base: str) -> None:
    parameters = AnalyserParameters.from_arguments({"base_tokenizer": base})
    assert (parameters.stem, parameters.remove_stop_words) == (False, False)
    assert AnalyserParameters.from_arguments({"base_tokenizer": base, "stem": True}).stem


def test_none_is_the_default_except_for_the_longest_token() -> None:
    parameters = AnalyserParameters.from_arguments({"stem": None, "language": None, "max_token_length": None})
    assert parameters == AnalyserParameters(max_token_length=None)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"languag": "English"}, WrongTypeError, "unknown full-text parameter 'languag'; did you mean 'language'?"),
        ({"language": "english"}, InvalidInputError, "found 'english'; did you mean 'English'?"),
        ({"language": "Klingon"}, InvalidInputError, "Arabic, Danish.*Turkish, found 'Klingon'"),
        ({"base_tokenizer": "simpl"}, InvalidInputError, "unknown base_tokenizer.*did you mean 'simple'?"),
        ({"analyzer": "test"}, InvalidInputError, "unknown analyzer: expected 'text' or 'code'"),
        ({"analyzer": "code", "base_tokenizer": "raw"}, InvalidInputError, "analyzer and base_tokenizer disagree"),
        ({"lance_tokenizer": "xml"}, InvalidInputError, "unknown lance_tokenizer"),
        ({"split_identifiers": True}, InvalidInputError, "split_identifiers needs analyzer 'code'"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 4}, InvalidInputError, "found 4 and 3"),
        ({"base_tokenizer": "ngram", "min_ngram_length": 0}, InvalidInputError, "found 0 and 3"),
        ({"max_token_length": -1}, InvalidInputError, "expected 0 to 4294967295, found -1"),
        ({"max_token_length": True}, WrongTypeError, "expected int, found bool"),
        ({"stem": 1}, WrongTypeError, "expected bool, found int"),
        ({"language": 3}, WrongTypeError, "bad language: expected str, found int"),
        ({"base_tokenizer": 3}, WrongTypeError, "bad base_tokenizer: expected str, found int"),
        ({"custom_stop_words": "a"}, WrongTypeError, "expected a list of str, found 'a'"),
        ({"custom_stop_words": [1]}, WrongTypeError, "expected a list of str"),
        ({"custom_stop_words": ["\ud800"]}, InvalidInputError, r"bad custom_stop_words: expected valid Unicode"),
        ({"block_size": 64}, InvalidInputError, "expected 128 or 256, found 64"),
    ],
)
def test_invalid_arguments_are_rejected(arguments: dict[str, Any], error: type[Exception], words: Any) -> None:
    with pytest.raises(error, match=f"tokenize: .*{words}"):
        AnalyserParameters.from_arguments(arguments, "tokenize")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"stem": 3}', '{"max_token_length": -1}', '{"custom_stop_words": {}}', "[" * 9_999]
)
def test_damaged_parameters_are_corrupt(text: str) -> None:
    with pytest.raises(CorruptError, match="of a full-text index"):
        AnalyserParameters.from_json(text)


@pytest.mark.parametrize(
    "stored",
    [
        {"base_tokenizer": "icu"},
        {"base_tokenizer": "icu/split"},
        {"base_tokenizer": "code"},
        {"base_tokenizer": "jieba/default"},
        {"base_tokenizer": "lindera/ipadic"},
        {"base_tokenizer": "of the future"},
        {"lance_tokenizer": "xml"},
        {"language": "Klingon"},
    ],
)
def test_unsupported_parameters_are_readable_but_not_usable(stored: dict[str, str]) -> None:
    parameters = AnalyserParameters.from_json(json.dumps(stored))
    ((name, value),) = stored.items()
    assert parameters.refusal == f"{name} {value!r} is not supported"
    assert json.loads(parameters.to_json())[name] == value
    with pytest.raises(UnsupportedError, match="is not supported"):
        Analyser(parameters)


def test_ngrams_of_length_zero_are_readable_but_not_usable() -> None:
    parameters = AnalyserParameters.from_json('{"base_tokenizer":"ngram","min_ngram_length":0}')
    with pytest.raises(UnsupportedError, match="n-grams of 0 to 3 characters are not supported"):
        Analyser(parameters)


def test_an_unused_language_is_not_validated() -> None:
    parameters = AnalyserParameters(language="Klingon", stem=False, remove_stop_words=False)
    assert parameters.refusal is None
