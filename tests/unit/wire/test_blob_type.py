from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.wire.blob_type import Blob, BlobArray, BlobType, blob_array, blob_field
from lance_duck.wire.schema_write import schema_from_arrow

NOTHING = {"data": None, "uri": None, "position": None, "size": None}


def test_arrays_of_all_that_a_blob_can_be() -> None:
    array = blob_array(
        [b"a", bytearray(b"b"), memoryview(b"c"), "file:///d", Blob.from_uri("s3://e/f", 1, 2), Blob.empty(), None]
    )
    assert isinstance(array, BlobArray)
    assert array.to_pylist() == [
        NOTHING | {"data": b"a"},
        NOTHING | {"data": b"b"},
        NOTHING | {"data": b"c"},
        NOTHING | {"uri": "file:///d"},
        {"data": None, "uri": "s3://e/f", "position": 1, "size": 2},
        NOTHING | {"data": b""},
        None,
    ]
    assert len(blob_array([])) == 0
    assert Blob.from_bytes(bytearray(b"x")) == Blob(b"x")


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"data": b"", "uri": "x"},
        {"uri": ""},
        {"uri": "x", "size": 1},
        {"uri": "x", "position": 1},
        {"data": b"x", "position": 0, "size": 1},
        {"uri": "x", "position": -1, "size": 1},
        {"uri": "x", "position": 0, "size": 0},
    ],
)
def test_invalid_blobs_are_rejected(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="Blob"):
        Blob(**arguments)


@pytest.mark.parametrize("value", [1, ["x"], ""])
def test_values_that_are_not_blobs_are_rejected(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        blob_array([value])


def test_fields_store_thresholds() -> None:
    assert blob_field("b").metadata is None
    field = blob_field(
        "b", nullable=False, inline_size_threshold=0, dedicated_size_threshold=5, pack_file_size_threshold=7
    )
    assert not field.nullable
    assert field.metadata == {
        b"lance-encoding:blob-inline-size-threshold": b"0",
        b"lance-encoding:blob-dedicated-size-threshold": b"5",
        b"lance-encoding:blob-pack-file-size-threshold": b"7",
    }


@pytest.mark.parametrize(
    "threshold",
    [
        {"inline_size_threshold": -1},
        {"dedicated_size_threshold": 0},
        {"pack_file_size_threshold": True},
        {"pack_file_size_threshold": 1.5},
        {"inline_size_threshold": 2**64},
    ],
)
def test_invalid_thresholds_are_rejected(threshold: dict[str, Any]) -> None:
    (name,) = threshold
    with pytest.raises(InvalidInputError, match=name):
        blob_field("b", **threshold)


def test_types_survive_pickle_and_ipc() -> None:
    short = BlobType(pa.struct([("data", pa.large_binary()), ("uri", pa.string())]))
    for kind in (BlobType(), short):
        assert pickle.loads(pickle.dumps(kind)) == kind
    assert short != BlobType()
    table = pa.table({"b": blob_array([b"x"])})
    with _stream(table) as reader:
        (column,) = reader.read_all().columns
    assert column.type.extension_name == BlobType().extension_name
    assert column.chunk(0).storage == table["b"].chunk(0).storage


def _stream(table: pa.Table) -> pa.RecordBatchReader:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue())


def test_other_storage_types_are_rejected() -> None:
    for storage in (pa.large_binary(), pa.struct([("data", pa.binary()), ("uri", pa.string())])):
        with pytest.raises(InvalidInputError, match="storage"):
            BlobType(storage)


def test_blob_type_columns_are_version_2_blobs() -> None:
    schema = schema_from_arrow(pa.schema([blob_field("b", inline_size_threshold=3)]))
    (field,) = schema.fields
    assert field.blob_version == 2
    assert field.metadata["lance-encoding:blob-inline-size-threshold"] == "3"
    type_ = schema.arrow.field("b").type  # pylance's type, if it was imported before
    assert (type_.extension_name, type_.storage_type) == (BlobType().extension_name, BlobType().storage_type)
