from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import PRIMARY_KEY, PRIMARY_KEY_POSITION, schema_from_proto
from lance_duck.wire.schema_write import metadata_to_proto, primary_key, schema_from_arrow, schema_to_proto

STRUCT = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.struct([("z", pa.string())]))])
BFLOAT16 = {"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""}

TYPES: list[tuple[pa.DataType, str, int]] = [
    (pa.null(), "null", 0),
    (pa.bool_(), "bool", 1),
    (pa.uint64(), "uint64", 1),
    (pa.float16(), "halffloat", 1),
    (pa.string(), "string", 2),
    (pa.large_binary(), "large_binary", 2),
    (pa.binary(3), "fixed_size_binary:3", 1),
    (pa.date32(), "date32:day", 1),
    (pa.timestamp("us", "+01:00"), "timestamp:us:+01:00", 1),
    (pa.timestamp("ns"), "timestamp:ns:-", 1),
    (pa.time64("ns"), "time64:ns", 1),
    (pa.duration("ms"), "duration:ms", 1),
    (pa.decimal128(10, 2), "decimal:128:10:2", 1),
    (pa.decimal256(50, -3), "decimal:256:50:-3", 1),
    (pa.dictionary(pa.int8(), pa.large_string()), "dict:large_string:int8:false", 3),
    (STRUCT, "struct", 0),
    (pa.list_(pa.field("e", pa.string(), nullable=False)), "list", 1),
    (pa.large_list(STRUCT), "large_list.struct", 1),
    (pa.list_(pa.timestamp("s", "UTC"), 2), "fixed_size_list:timestamp:s:UTC:2", 1),
    (pa.list_(pa.list_(pa.float32(), 2), 3), "fixed_size_list:fixed_size_list:float:2:3", 1),
    (pa.list_(pa.field("item", STRUCT), 2), "fixed_size_list:struct:2", 1),
    (pa.map_(pa.string(), STRUCT), "map", 1),
    (pa.list_(pa.field("item", pa.binary(2), metadata=BFLOAT16), 4), "fixed_size_list:lance.bfloat16:4", 1),
]


@pytest.mark.parametrize(("arrow", "logical", "encoding"), TYPES, ids=lambda value: str(value)[:30])
def test_schemas_round_trip(arrow: pa.DataType, logical: str, encoding: int) -> None:
    schema = schema_from_arrow(pa.schema([pa.field("c", arrow)], metadata={"k": "v"}))
    protos = schema_to_proto(schema)
    assert (protos[0].logical_type, protos[0].encoding) == (logical, encoding)
    back = schema_from_proto(protos, metadata_to_proto(schema.metadata))
    assert back == schema
    given = pa.schema([pa.field("c", arrow)], metadata={"k": "v"})
    # Somebody may have registered the extension types in this process.
    assert back.arrow.equals(pa.ipc.read_schema(given.serialize()), check_metadata=True)


def test_ids_are_assigned_depth_first() -> None:
    arrow = pa.schema([("a", STRUCT), ("m", pa.map_(pa.string(), pa.list_(pa.int8()))), ("b", pa.int8())])
    fields = [(f.id, f.parent_id, f.name) for f in schema_from_arrow(arrow, first_id=5).walk()]
    assert fields == [
        *((5, -1, "a"), (6, 5, "x"), (7, 5, "y"), (8, 7, "z")),
        *((9, -1, "m"), (10, 9, "entries"), (11, 10, "key"), (12, 10, "value"), (13, 12, "item"), (14, -1, "b")),
    ]


def test_existing_fields_keep_their_ids() -> None:
    old = schema_from_arrow(pa.schema([("a", pa.int8()), ("s", pa.struct([("x", pa.int8())]))]))
    arrow = pa.schema([("n", pa.int8()), ("s", pa.struct([("y", pa.int8()), ("x", pa.int8())])), ("a", pa.int8())])
    found = [(f.id, f.parent_id, f.name) for f in schema_from_arrow(arrow, existing=old).walk()]
    assert found == [(3, -1, "n"), (1, -1, "s"), (4, 1, "y"), (2, 1, "x"), (0, -1, "a")]


def test_extension_types_are_stored_as_field_metadata() -> None:
    arrow = pa.schema(
        [
            ("u", pa.uuid()),
            ("j", pa.json_(pa.large_string())),
            ("t", pa.fixed_shape_tensor(pa.float32(), (2, 2))),
            ("l", pa.list_(pa.uuid())),
            pa.field("o", pa.int32(), metadata={"ARROW:extension:name": "my.own", "a": "b"}),
        ]
    )
    fields = [f for f in schema_from_arrow(arrow).walk() if f.name != "l"]
    assert [(f.logical_type, f.extension_name) for f in fields] == [
        ("fixed_size_binary:16", "arrow.uuid"),
        ("json", "lance.json"),
        ("fixed_size_list:float:4", "arrow.fixed_shape_tensor"),
        ("fixed_size_binary:16", "arrow.uuid"),
        ("int32", "my.own"),
    ]
    assert fields[2].metadata["ARROW:extension:metadata"] == '{"shape":[2,2]}'
    protos = schema_to_proto(schema_from_arrow(arrow))
    assert [p.extension_name for p in protos] == [*(f.extension_name for f in fields[:3]), "", "arrow.uuid", "my.own"]
    assert dict(protos[-1].metadata) == {"ARROW:extension:name": b"my.own", "a": b"b"}


def test_blobs_become_structs_in_version_2_2_only() -> None:
    arrow = pa.schema([pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", "k": "v"})])
    new = schema_from_arrow(arrow).fields[0]
    assert (new.logical_type, dict(new.metadata)) == ("struct", {"ARROW:extension:name": "lance.blob.v2", "k": "v"})
    assert [(f.name, f.logical_type) for f in new.children] == [("data", "large_binary"), ("uri", "string")]
    old = schema_from_arrow(arrow, "2.1").fields[0]
    assert (old.logical_type, old.blob_version) == ("large_binary", 1)


def test_view_types_become_plain_types() -> None:
    arrow = pa.schema([("s", pa.string_view()), ("b", pa.binary_view()), ("l", pa.list_(pa.string_view()))])
    assert schema_from_arrow(arrow).arrow.types == [pa.string(), pa.binary(), pa.list_(pa.string())]


def test_keys_are_set_from_metadata() -> None:
    def key(name: str, position: str) -> pa.Field:
        return pa.field(name, pa.int32(), nullable=False, metadata={PRIMARY_KEY_POSITION: position})

    free = pa.field("c", pa.int32(), nullable=False, metadata={PRIMARY_KEY: "Yes"})
    schema = schema_from_arrow(pa.schema([free, key("a", "2"), key("b", "1"), pa.field("d", pa.int8())]))
    protos = schema_to_proto(schema)
    assert [p.unenforced_primary_key for p in protos] == [True, True, True, False]
    assert [p.unenforced_primary_key_position for p in protos] == [0, 2, 1, 0]
    assert [f.name for f in primary_key(schema)] == ["b", "a", "c"]


def test_primary_key_fields_of_the_message_are_kept() -> None:
    proto = file_pb2.Field(name="a", logical_type="int32", parent_id=-1, unenforced_primary_key=True)
    proto.unenforced_primary_key_position = 3
    (back,) = schema_to_proto(schema_from_proto([proto]))
    assert (back.unenforced_primary_key, back.unenforced_primary_key_position) == (True, 3)


@pytest.mark.parametrize(
    "arrow",
    [
        *(pa.decimal32(5, 2), pa.month_day_nano_interval(), pa.run_end_encoded(pa.int32(), pa.int8())),
        *(pa.sparse_union([pa.field("a", pa.int8())]), pa.list_(pa.string(), 2)),
        *(pa.list_(pa.float32(), 0), pa.map_(pa.string(), pa.int8(), keys_sorted=True)),
        *(pa.dictionary(pa.int8(), pa.date32()), pa.list_(pa.dictionary(pa.int8(), pa.string()), 2)),
    ],
    ids=str,
)
def test_types_missing_in_lance_are_rejected_by_name(arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=r"column 's\.c'"):
        schema_from_arrow(pa.schema([("s", pa.struct([("c", arrow)]))]))


@pytest.mark.parametrize(
    ("version", "arrow"),
    [
        *(("2.0", pa.map_(pa.string(), pa.int8())), ("2.1", pa.map_(pa.string(), pa.int8()))),
        ("2.1", pa.list_(STRUCT, 2)),
    ],
)
def test_types_missing_in_a_version_are_rejected(version: str, arrow: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match=f"version {version}"):
        schema_from_arrow(pa.schema([("c", arrow)]), version)


def test_invalid_column_names_are_rejected() -> None:
    twice = pa.schema([("a", pa.int8()), ("a", pa.int8())])
    below = pa.schema([("s", pa.struct([("a", pa.int8()), ("a", pa.int8())]))])
    for arrow, what in [(twice, "'a'"), (below, r"'s\.a'"), (pa.schema([("a.b", pa.int8())]), "dot")]:
        with pytest.raises(InvalidInputError, match=what):
            schema_from_arrow(arrow)


@pytest.mark.parametrize("arrow", [pa.int32(), pa.list_(pa.int32())])
def test_nullable_or_nested_keys_are_rejected(arrow: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="primary key"):
        schema_from_arrow(
            pa.schema([pa.field("c", arrow, nullable=not pa.types.is_list(arrow), metadata={PRIMARY_KEY: "true"})])
        )
