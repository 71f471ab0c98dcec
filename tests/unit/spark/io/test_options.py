from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import pytest

from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.spark.io.options import ReadOptions, SparkWriteOptions
from lance_duck.spark.table_ref import TableRef

MOMENT = "2024-01-01T00:00:00+00:00"


def test_all_options_of_a_read() -> None:
    found = ReadOptions.of(
        {
            "path": "file:/tmp/t",
            "versionasof": "3",
            "columns": "id, s",
            "filter": "id > 1",
            "limit": "5",
            "with_row_id": "true",
            "row_address": "TRUE",
            "batch-size": "7",
            "block_size": "4096",
            "usescalarindex": "false",
            "storage_options": '{"region": "eu"}',
            "storage.endpoint": "http://x",
            "MinPartitions": "4",
        }
    )
    place = TableRef("/tmp/t", (("endpoint", "http://x"), ("region", "eu")))
    assert found == ReadOptions(place, 3, None, None, ("id", "s"), "id > 1", 5, True, True, 7, None, False, None, 4)


@pytest.mark.parametrize(
    ("options", "attribute", "value"),
    [
        ({"version": "release"}, "version", "release"),
        ({"tag": "7"}, "version", "7"),
        (
            {"timestampAsOf": "2024-01-01T00:00:00+00:00"},
            "timestamp",
            datetime.fromisoformat("2024-01-01T00:00:00+00:00"),
        ),
        ({"columns": '["a,b", "c"]'}, "columns", ("a,b", "c")),
        ({"columns": '{"x": "a + 1"}'}, "columns", {"x": "a + 1"}),
        ({"paths": '["/tmp/t"]'}, "place", TableRef("/tmp/t")),
    ],
)
def test_options_accept_several_forms(options: dict[str, str], attribute: str, value: Any) -> None:
    assert (
        getattr(ReadOptions.of({"path": "/tmp/t"} | options if "paths" not in options else options), attribute) == value
    )


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({}, InvalidInputError, "the path of the table is missing"),
        ({"paths": '["/a", "/b"]'}, UnsupportedError, "load takes one table"),
        ({"path": "/t", "colums": "a"}, InvalidInputError, "unknown option 'colums'.*did you mean 'columns'"),
        ({"path": "/t", "snapshot-id": "1"}, InvalidInputError, "unknown option 'snapshot-id'"),
        ({"path": "/t", "mergeSchema": "true"}, UnsupportedError, "add_columns"),
        ({"path": "/t", "limit": "-1"}, InvalidInputError, "option 'limit'.*at least 0"),
        ({"path": "/t", "row_id": "yes"}, InvalidInputError, "true or false"),
        ({"path": "/t", "containsNull": "yes"}, InvalidInputError, "true or false"),
        ({"path": "/t", "version": "1", "tag": "x"}, InvalidInputError, "one of them"),
        ({"path": "/t", "timestamp": "soon"}, InvalidInputError, "option 'timestamp'"),
        ({"path": "/t", "columns": "[1"}, InvalidInputError, "option 'columns'"),
        ({"path": "/t", "storage_options": "[]"}, InvalidInputError, "option 'storage_options'"),
    ],
)
def test_invalid_read_options_are_rejected(options: dict[str, str], error: type[LanceDuckError], said: str) -> None:
    with pytest.raises(error, match=said):
        ReadOptions.of(options)


def test_all_options_of_a_write() -> None:
    found = SparkWriteOptions.of(
        {
            "path": "/tmp/t",
            "save_mode": "ErrorIfExists",
            "max_row_per_file": "10",
            "maxBytesPerFile": "1000",
            "file_format_version": "2.1",
            "enable_stable_row_ids": "true",
            "vector_columns": "v:128, w:float16[64]",
            "vector.x.dim": "4",
            "Emb.arrow.fixed-size-list.size": "8",
            "blob_columns": '["b"]',
            "userMetadata": "why",
        }
    )
    settings = found.settings
    assert (settings.max_rows_per_file, settings.max_bytes_per_file) == (10, 1000)
    assert (settings.data_storage_version, settings.enable_stable_row_ids) == ("2.1", True)
    assert (settings.commit_message, found.save_mode) == ("why", "error")
    assert found.vectors_of(["V", "w", "X", "EMB"]) == {"V": "128", "w": "float16[64]", "X": "4", "EMB": "8"}
    assert found.blobs_of(["a", "B"]) == {"B"}


@pytest.mark.parametrize(
    "options",
    [
        {"save_mode": "sometimes"},
        {"vector_columns": "128"},
        {"max_rows_per_file": "0"},
        {"compression": "zstd"},
        {"write_mode": "append"},
    ],
)
def test_invalid_write_options_are_rejected(options: dict[str, str]) -> None:
    (name,) = options
    with pytest.raises(LanceDuckError, match=f"option '{name}'"):
        SparkWriteOptions.of({"path": "/t"} | options)


@pytest.mark.parametrize("parse", [ReadOptions.of, SparkWriteOptions.of])
def test_a_cache_is_an_option_of_its_own(parse: Any) -> None:
    options = {"path": "/t", "storage.cache": "/other", "storage.region": "eu"}
    assert parse(options).place == TableRef("/t", (("cache", "/other"), ("region", "eu")))
    for name in ("cacheSize", "cache_size", "cachesize"):
        place = parse(options | {"cache": "/folder", name: "5GB"}).place
        assert place == TableRef("/t", (("cache", "/folder"), ("cache_size", "5GB"), ("region", "eu")))
    assert dict(parse({"path": "/t", "cache": "folder"}).place.storage_options) == {"cache": os.path.abspath("folder")}


def test_options_of_other_formats_are_ignored() -> None:
    others = {"starting_version": "1", "checkpointLocation": "/c"}
    assert ReadOptions.of({"path": "/t"} | others, ["startingversion"]) == ReadOptions.of({"path": "/t"})
    assert SparkWriteOptions.of({"path": "/t", "txnAppId": "x"}, ["txnappid"]) == SparkWriteOptions.of({"path": "/t"})


def test_the_vector_option_error_suggests_the_call_that_finds_lengths() -> None:
    with pytest.raises(LanceDuckError) as raised:
        SparkWriteOptions.of({"path": "/t", "vector_columns": "v"})
    assert str(raised.value) == (
        "option 'vector_columns': expected name:length, …, found 'v'; "
        'ls.write(frame, path, vector_columns=["name"]) finds the length'
    )
