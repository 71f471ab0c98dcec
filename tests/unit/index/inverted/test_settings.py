"""Settings of a full-text index, and their form in the manifest."""

from __future__ import annotations

from typing import Any

import pytest

from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.index.inverted.layout import VARINTS, WORDS
from lance_duck.index.inverted.settings import InvertedSettings, is_by_element, settings_in, shown_settings

DEFAULTS = "0a0673696d706c65120922456e676c6973682220282801300138014001480350036080017802"


def test_details_are_the_message_that_pylance_writes() -> None:
    details = InvertedSettings.of({}).details()
    assert (details.version, details.value.hex()) == (2, DEFAULTS)


@pytest.mark.parametrize(
    ("arguments", "version", "hexadecimal"),
    [
        (
            {"with_position": True, "language": "German", "max_token_length": None, "stem": False, "lower_case": False},
            2,
            "0a0673696d706c651208224765726d616e22180138014001480350036080017802",
        ),
        (
            {"base_tokenizer": "ngram", "min_ngram_length": 2, "prefix_only": True},
            2,
            "0a056e6772616d120922456e676c697368222028280140014802500358016080017802",
        ),
        ({"block_size": 256}, 3, DEFAULTS.replace("6080017802", "6080027803")),
        ({"format_version": "v1"}, 1, DEFAULTS[:-2] + "01"),
    ],
)
def test_settings_are_encoded_like_in_pylance(arguments: dict[str, Any], version: int, hexadecimal: str) -> None:
    settings = InvertedSettings.of(arguments)
    assert (settings.details().version, settings.details().value.hex()) == (version, hexadecimal)
    assert settings_in(settings.details().value) == settings
    assert InvertedSettings.of(settings.arguments) == settings


def test_details_of_an_old_writer_mean_the_defaults() -> None:
    assert settings_in(b"").parameters == InvertedSettings.of({}).parameters
    assert settings_in(b"\xff") == InvertedSettings.of({})


def test_shown_settings_use_the_names_of_pylance() -> None:
    shown = shown_settings(bytes.fromhex(DEFAULTS))
    assert shown["base_tokenizer"] == "simple"
    assert shown["document_granularity"] == "row"
    assert shown["lance_tokenizer"] is None
    assert shown_settings(b"\xff") == {}


@pytest.mark.parametrize(("version", "codec"), [(1, WORDS), (2, VARINTS), (3, VARINTS)])
def test_the_last_block_follows_the_format(version: int, codec: str) -> None:
    assert InvertedSettings.of({"format_version": version}).form.posting_tail_codec == codec


def test_build_limits_are_not_stored() -> None:
    settings = InvertedSettings.of({"memory_limit": 3, "num_workers": 0})
    assert (settings.memory_limit, settings.workers) == (3 << 20, 1)
    assert InvertedSettings.of({"memory_limit": "256MB"}).memory_limit == 256_000_000
    assert settings.details() == InvertedSettings.of({}).details()
    assert "memory_limit" not in settings.form.params


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"with_positions": True}, WrongTypeError, "did you mean 'with_position'"),
        ({"formats": 1}, WrongTypeError, "did you mean 'format_version'"),
        ({"format_version": True}, InvalidInputError, "1, 2 or 3"),
        ({"format_version": 2, "block_size": 256}, InvalidInputError, "format_version=3"),
        ({"memory_limit": 0}, InvalidInputError, "1 or more"),
        ({"memory_limit": "much"}, InvalidInputError, "not a number of bytes"),
        ({"memory_limit": "1"}, WrongTypeError, "whole number"),
        ({"num_workers": 1.5}, WrongTypeError, "whole number"),
        ({"base_tokenizer": "icu"}, UnsupportedError, "icu"),
        ({"document_granularity": 1}, InvalidInputError, "ROW or LIST_ELEMENT"),
    ],
)
def test_invalid_settings_are_rejected(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        InvertedSettings.of(arguments)


def test_list_element_granularity_round_trips_through_details() -> None:
    settings = InvertedSettings.of({"document_granularity": "LIST_ELEMENT"})
    details = settings.details()
    assert details.version == 3
    assert is_by_element(details.value)
    assert shown_settings(details.value)["document_granularity"] == "list_element"
    assert InvertedSettings.of(settings.arguments) == settings
    assert settings_in(details.value).form == settings.form
    assert not is_by_element(InvertedSettings.of({}).details().value)
    assert not is_by_element(b"\xff")


def test_the_default_format_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANCE_FTS_FORMAT_VERSION", "v1")
    assert InvertedSettings.of({}).form.format_version == 1
    assert InvertedSettings.of({"format_version": 3}).form.format_version == 3
    with pytest.raises(
        InvalidInputError, match="LANCE_FTS_FORMAT_VERSION=1 does not support block_size=256; use format_version=3"
    ):
        InvertedSettings.of({"block_size": 256})
    for value in ("x", "", "4"):
        monkeypatch.setenv("LANCE_FTS_FORMAT_VERSION", value)
        with pytest.raises(InvalidInputError, match="LANCE_FTS_FORMAT_VERSION: expected 1, 2 or 3"):
            InvertedSettings.of({})
