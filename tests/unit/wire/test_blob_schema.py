from __future__ import annotations

import pyarrow as pa

from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import BLOB_V1_SCAN, BLOB_V2_SCAN, schema_from_proto

V1 = {"lance-encoding:blob": b"true", "k": b"v"}
V2 = {"ARROW:extension:metadata": b"", "k": b"v"}


def field(name: str, kind: str, id_: int, parent: int = -1, **more: object) -> file_pb2.Field:
    return file_pb2.Field(name=name, id=id_, parent_id=parent, logical_type=kind, nullable=True, **more)  # type: ignore[arg-type]


SCHEMA = schema_from_proto(
    [
        field("one", "large_binary", 0, metadata=V1),
        field("two", "struct", 1, extension_name="lance.blob.v2", metadata=V2),
        field("data", "large_binary", 2, 1),
        field("uri", "string", 3, 1),
        field("l", "list", 4),
        field("item", "struct", 5, 4, extension_name="lance.blob.v2"),
        field("data", "large_binary", 6, 5),
        field("uri", "string", 7, 5),
        field("plain", "large_binary", 8),
    ]
)


def test_blobs_are_scanned_as_descriptions_or_as_bytes() -> None:
    bytes_ = pa.large_binary()
    assert SCHEMA.scan_arrow.types == [BLOB_V1_SCAN, BLOB_V2_SCAN, pa.list_(BLOB_V2_SCAN), bytes_]
    found = SCHEMA.with_blob_bytes()
    assert found.scan_arrow.types == [bytes_, bytes_, pa.list_(bytes_), bytes_]
    assert [f.blob_version for f in found.fields] == [1, 2, 0, 0]
    assert [f.id for f in found.walk()] == [0, 1, 4, 5, 8]


def test_version_1_metadata_stays_and_descriptions_have_separate_metadata() -> None:
    own = {b"lance-encoding:blob": b"true", b"lance-encoding:packed": b"true"}
    assert SCHEMA.scan_arrow.field("one").metadata == {b"lance-encoding:blob": b"true", b"k": b"v"}
    assert SCHEMA.scan_arrow.field("two").metadata == own
    found = SCHEMA.with_blob_bytes().scan_arrow
    assert found.field("one").metadata == {b"lance-encoding:blob": b"true", b"k": b"v"}
    assert found.field("two").metadata == {b"ARROW:extension:metadata": b"", b"k": b"v"}


def test_a_schema_without_blobs_is_returned_unchanged() -> None:
    plain = schema_from_proto([field("a", "int32", 0)])
    assert plain.with_blob_bytes() is plain
