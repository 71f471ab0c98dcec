from __future__ import annotations

import pytest

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.inverted.layout import (
    ARROW,
    FST,
    VARINTS,
    WORDS,
    InvertedParameters,
    inverted_parameters,
    partition_numbers,
)

PARAMS = {"base_tokenizer": "simple", "language": "English", "with_position": True, "custom": ["ä", None]}


@pytest.mark.parametrize(
    "parameters",
    [
        InvertedParameters(PARAMS, True),
        InvertedParameters(PARAMS, True, 128, 1, WORDS),
        InvertedParameters(PARAMS, True, 256, 3, VARINTS, ARROW),
    ],
)
def test_parameters_round_trip_through_metadata(parameters) -> None:
    metadata = parameters.metadata([3, 1 << 40])
    assert inverted_parameters(metadata, "file") == parameters
    assert partition_numbers(metadata, "file") == [3, 1 << 40]


def test_parameter_json_is_compact_and_unescaped() -> None:
    assert InvertedParameters({"a": "ä", "b": [1, 2]}).metadata([0, 1]) == {
        "params": '{"a":"ä","b":[1,2]}',
        "partitions": "[0,1]",
        "format_version": "2",
        "posting_block_size": "128",
        "posting_tail_codec": VARINTS,
        "token_set_format": FST,
    }


def test_absent_keys_mean_the_oldest_files() -> None:
    parameters = inverted_parameters({"params": "{}", "partitions": "[]"}, "file")
    assert parameters == InvertedParameters({}, False, 128, 1, WORDS, ARROW)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format_version": "4"}, "unknown format of the full-text index: expected 1, 2 or 3, found 4"),
        ({"posting_block_size": "256"}, "block size"),
        ({"posting_block_size": "64"}, "block size"),
        ({"posting_tail_codec": "x"}, "posting_tail_codec"),
        ({"token_set_format": "x"}, "token_set_format"),
    ],
)
def test_unsupported_parameters_are_rejected_by_name(change, words) -> None:
    with pytest.raises(UnsupportedError, match=words):
        inverted_parameters(InvertedParameters().metadata([0]) | change, "file")


@pytest.mark.parametrize(
    "change",
    [
        {"params": "{"},
        {"params": "[]"},
        {"partitions": "{}"},
        {"partitions": "[-1]"},
        {"partitions": "[0,0]"},
        {"partitions": '["a"]'},
        {"format_version": "x"},
        {"posting_block_size": "9" * 30},
    ],
)
def test_invalid_metadata_is_corrupt(change) -> None:
    metadata = InvertedParameters().metadata([0]) | change
    read = partition_numbers if "partitions" in change else inverted_parameters
    with pytest.raises(CorruptError):
        read(metadata, "file")
