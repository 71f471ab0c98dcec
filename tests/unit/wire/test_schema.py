from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import Schema, schema_from_proto


def field(name: str, logical_type: str, id: int, parent_id: int = -1, **more: Any) -> file_pb2.Field:  # noqa: A002
    return file_pb2.Field(
        name=name, logical_type=logical_type, id=id, parent_id=parent_id, **({"nullable": True} | more)
    )


def only(logical_type: str, **more: Any) -> pa.Field:
    return schema_from_proto([field("c", logical_type, 0, **more)]).arrow.field("c")


@pytest.mark.parametrize(
    ("logical_type", "expected"),
    [
        ("null", pa.null()),
        ("bool", pa.bool_()),
        ("int8", pa.int8()),
        ("uint64", pa.uint64()),
        ("halffloat", pa.float16()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("string", pa.string()),
        ("large_string", pa.large_string()),
        ("binary", pa.binary()),
        ("large_binary", pa.large_binary()),
        ("fixed_size_binary:5", pa.binary(5)),
        ("date32:day", pa.date32()),
        ("date64:ms", pa.date64()),
        ("time32:ms", pa.time32("ms")),
        ("time64:ns", pa.time64("ns")),
        ("duration:us", pa.duration("us")),
        ("timestamp:s:-", pa.timestamp("s")),
        ("timestamp:us:UTC", pa.timestamp("us", "UTC")),
        ("timestamp:ns:+02:00", pa.timestamp("ns", "+02:00")),
        ("decimal:128:10:2", pa.decimal128(10, 2)),
        ("decimal:256:50:-3", pa.decimal256(50, -3)),
        ("dict:string:int8:false", pa.dictionary(pa.int8(), pa.string())),
        ("dict:large_string:int32:true", pa.dictionary(pa.int32(), pa.large_string())),
        ("fixed_size_list:float:16", pa.list_(pa.float32(), 16)),
        ("fixed_size_list:timestamp:us:UTC:2", pa.list_(pa.timestamp("us", "UTC"), 2)),
        ("fixed_size_list:fixed_size_list:int8:3:4", pa.list_(pa.list_(pa.int8(), 3), 4)),
        ("json", pa.json_(pa.string())),
    ],
)
def test_logical_types_become_arrow_types(logical_type: str, expected: pa.DataType) -> None:
    assert only(logical_type).type == expected


@pytest.mark.parametrize(
    "logical_type",
    [
        "",
        "int128",
        "decimal:64:3:1",
        "decimal:128:99:1",
        "decimal:128",
        "timestamp:us",
        "timestamp:xs:-",
        "fixed_size_binary:-1",
        "fixed_size_binary:99999999999",
        "fixed_size_list:float",
        "fixed_size_list:what:4",
        "fixed_size_list:float:x",
        "dict:string:int8",
        "dict:string:string:false",
        "time32:ns",
        "fixed_size_list:" * 100 + "float" + ":2" * 100,
    ],
)
def test_unknown_logical_types_are_named(logical_type: str) -> None:
    schema = schema_from_proto([field("good", "int32", 0), field("bad", logical_type, 1)])
    assert schema.by_path("good").arrow_type == pa.int32()
    with pytest.raises(UnsupportedError, match="bad: unknown logical type"):
        _ = schema.by_path("bad").arrow_type
    with pytest.raises(UnsupportedError):
        _ = schema.arrow


def nested() -> Schema:
    return schema_from_proto(
        [
            field("s", "struct", 0),
            field("a.b", "int32", 1, 0, nullable=False, metadata={"k": b"v"}),
            field("l", "list.struct", 2, 0),
            field("item", "struct", 3, 2),
            field("x", "string", 4, 3),
            field("m", "map", 5),
            field("entries", "struct", 6, 5, nullable=False),
            field("key", "string", 7, 6, nullable=False),
            field("value", "int64", 8, 6),
            field("f", "fixed_size_list:struct:2", 9),
            field("item", "struct", 10, 9),
            field("y", "large_list", 11, 10),
            field("item", "bool", 12, 11),
            field("e", "struct", 13),
            field("a.b", "int8", 14),
        ],
        {"meta": b"data", "bytes": b"\xff"},
    )


def test_children_follow_their_parents() -> None:
    item = pa.field("item", pa.struct([("x", pa.string())]))
    inner = pa.field("a.b", pa.int32(), nullable=False, metadata={"k": "v"})
    expected = pa.schema(
        [
            ("s", pa.struct([inner, pa.field("l", pa.list_(item))])),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("f", pa.list_(pa.field("item", pa.struct([("y", pa.large_list(pa.bool_()))])), 2)),
            ("e", pa.struct([])),
            ("a.b", pa.int8()),
        ],
        metadata={"meta": "data", "bytes": "\ufffd"},
    )
    assert nested().arrow.equals(expected, check_metadata=True)


def test_fields_are_found_by_id_and_by_path() -> None:
    schema = nested()
    assert schema.by_id(12).logical_type == "bool"
    assert [schema.by_path(p).id for p in ("s", "s.l.item.x", "a.b", "s.`a.b`", "m.entries.value")] == [0, 4, 14, 1, 8]
    assert [f.id for f in schema.walk()] == list(range(15))
    for path in ("z", "s.z", "s.a.b", "a", "s."):
        with pytest.raises(InvalidInputError):
            schema.by_path(path)
    with pytest.raises(InvalidInputError):
        schema.by_id(15)


@pytest.mark.parametrize(
    "fields",
    [
        [field("a", "int32", 1, 0)],
        [field("a", "int32", 0), field("b", "int32", 0)],
        [field("a", "list", 0)],
        [field("a", "struct", 0), field("l", "list", 1, 0), field("x", "int8", 2, 1), field("y", "int8", 3, 1)],
        [field("m", "map", 0), field("entries", "struct", 1, 0), field("key", "int8", 2, 1)],
        [field("a", "struct", 0, 0)],
        [field("a", "int32", 0), field("a", "string", 1)],
        [field("a", "struct", 0), field("x", "int8", 1, 0), field("x", "int8", 2, 0)],
    ],
)
def test_fields_that_do_not_form_a_tree_are_corrupt(fields: list[file_pb2.Field]) -> None:
    with pytest.raises(CorruptError):
        schema_from_proto(fields)


def test_deeply_nested_schemas_are_unsupported() -> None:
    fields = [field("a", "struct", i, i - 1) for i in range(1000)]
    with pytest.raises(UnsupportedError):
        schema_from_proto(fields)


def test_registered_extension_types_are_used_and_others_stay_metadata() -> None:
    uuid = {"ARROW:extension:name": b"arrow.uuid", "ARROW:extension:metadata": b""}
    assert only("fixed_size_binary:16", metadata=uuid).type == pa.uuid()
    tensor = {"ARROW:extension:name": b"arrow.fixed_shape_tensor", "ARROW:extension:metadata": b'{"shape":[2,3]}'}
    assert only("fixed_size_list:float:6", metadata=tensor).type == pa.fixed_shape_tensor(pa.float32(), [2, 3])
    other = only("int32", extension_name="my.type")
    assert (other.type, other.metadata) == (pa.int32(), {b"ARROW:extension:name": b"my.type"})
    broken = {"ARROW:extension:name": b"arrow.fixed_shape_tensor", "ARROW:extension:metadata": b"{"}
    assert only("fixed_size_list:float:6", metadata=broken).type == pa.list_(pa.float32(), 6)


def test_json_is_read_as_string() -> None:
    schema = schema_from_proto([field("l", "list", 0), field("item", "json", 1, 0, extension_name="lance.json")])
    assert schema.arrow.field("l").type == pa.list_(pa.json_(pa.string()))
    assert schema.by_path("l.item").is_json


def test_blobs_are_scanned_as_descriptions() -> None:
    schema = schema_from_proto(
        [
            field("one", "large_binary", 0, metadata={"lance-encoding:blob": b"true"}),
            field("two", "struct", 1, extension_name="lance.blob.v2"),
            field("data", "large_binary", 2, 1),
            field("uri", "string", 3, 1),
        ]
    )
    assert [f.blob_version for f in schema.fields] == [1, 2]
    assert schema.arrow.field("one").type == pa.large_binary()
    assert schema.scan_arrow.field("one").type == pa.struct([("position", pa.uint64()), ("size", pa.uint64())])
    names = [f.name for f in schema.scan_arrow.field("two").type]
    assert names == ["kind", "position", "size", "blob_id", "blob_uri"]
