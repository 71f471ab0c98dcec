from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.wire.flags import READABLE, check_readable, flag_names
from lance_duck.wire.fragment import DataFile, ExternalFile
from lance_duck.wire.manifest import BasePath, read_manifest
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.wire.transaction import read_transaction, transaction_from_proto

Make = Callable[..., bytes]
UUID_BYTES = bytes(range(16))


def whole() -> table_pb2.Manifest:
    manifest = table_pb2.Manifest(
        version=7,
        branch="dev",
        reader_feature_flags=1 | 2,
        writer_feature_flags=8,
        max_fragment_id=4,
        next_row_id=100,
        transaction_file="6-u.txn",
        config={"k": "v"},
        table_metadata={"t": "m"},
        schema_metadata={"s": b"m"},
        data_format={"file_format": "lance", "version": "2.1"},
        writer_version={"library": "lance", "version": "14.0.2"},
        base_paths=[{"id": 3, "name": "n", "is_dataset_root": True, "path": "/p"}],
        timestamp={"seconds": 1_700_000_000, "nanos": 123_456_789},
    )
    manifest.fields.add(name="a", id=0, parent_id=-1, logical_type="int32", nullable=True)
    manifest.fragments.add(
        id=4,
        physical_rows=10,
        files=[
            {"path": "x.lance", "fields": [0, -2], "column_indices": [0, -1], "file_major_version": 2, "base_id": 3}
        ],
        deletion_file={"file_type": 1, "read_version": 6, "id": 9, "num_deleted_rows": 2},
        inline_row_ids=b"ids",
        external_created_at_versions={"path": "p", "offset": 1, "size": 2},
    )
    return manifest


def test_all_manifest_sections_are_read(make_manifest: Make) -> None:
    index = table_pb2.IndexMetadata(
        uuid={"uuid": UUID_BYTES},
        name="i",
        fields=[0],
        dataset_version=5,
        fragment_bitmap=b"bits",
        index_details={"type_url": "/lance.table.BTreeIndexDetails"},
        index_version=1,
        created_at=1_700_000_000_500,
        files=[{"path": "page_data.lance", "size_bytes": 3}],
    )
    transaction = transaction_pb2.Transaction(uuid="u", append={})
    data = make_manifest(whole(), transaction, table_pb2.IndexSection(indices=[index]))
    manifest = read_manifest(data, "here")
    assert (manifest.version, manifest.branch, manifest.size) == (7, "dev", len(data))
    assert (manifest.reader_flags, manifest.writer_flags, manifest.has_stable_row_ids) == (3, 8, True)
    assert (manifest.max_fragment_id, manifest.next_row_id, manifest.transaction_name) == (4, 100, "6-u.txn")
    assert (dict(manifest.config), dict(manifest.metadata)) == ({"k": "v"}, {"t": "m"})
    assert dict(manifest.schema_metadata) == {"s": "m"}
    assert (manifest.data_storage_version, manifest.writer) == ("2.1", ("lance", "14.0.2"))
    assert manifest.timestamp == datetime.fromtimestamp(1_700_000_000, UTC).replace(microsecond=123_456)
    assert dict(manifest.base_paths) == {3: BasePath(3, "n", True, "/p")}
    assert manifest.inline_transaction == transaction
    (segment,) = manifest.indices
    assert (segment.uuid, segment.name, segment.fields, segment.version) == (UUID(bytes=UUID_BYTES), "i", (0,), 1)
    assert segment.details_type == "/lance.table.BTreeIndexDetails"
    assert (segment.fragment_bitmap, segment.files) == (b"bits", (("page_data.lance", 3),))
    assert segment.directory == f"_indices/{UUID(bytes=UUID_BYTES)}"
    assert segment.created_at == datetime.fromtimestamp(1_700_000_000.5, UTC)


@pytest.mark.parametrize(("flag", "version"), [(0, "0.1"), (4, "2.2")])
def test_a_missing_manifest_version_is_derived_from_files_or_flags(
    make_manifest: Make, flag: int, version: str
) -> None:
    old = table_pb2.Manifest(version=1, writer_feature_flags=flag)
    assert read_manifest(make_manifest(old), "here").data_storage_version == version
    old.fragments.add(files=[{"path": "x.lance", "file_major_version": 2, "file_minor_version": 1}])
    assert read_manifest(make_manifest(old), "here").data_storage_version == "2.1"


def test_fragments_are_built_on_access(make_manifest: Make) -> None:
    fragments = read_manifest(make_manifest(whole()), "here").fragments
    (fragment,) = fragments
    assert fragments[-1] is fragment
    assert fragments[:1] == (fragment,)
    assert fragment.files == (DataFile("x.lance", (0, -2), (0, -1), (2, 0), None, 3),)
    assert [fragment.files[0].column_of(i) for i in (0, -2, 1)] == [0, None, None]
    assert fragment.deletion_file is not None
    assert fragment.deletion_file.path(fragment.id) == "_deletions/4-6-9.bin"
    assert (fragment.num_rows, fragment.num_deletions, fragments.row_counts()) == (8, 2, (8,))
    assert (fragment.row_ids, fragment.created_at, fragment.last_updated_at) == (b"ids", ExternalFile("p", 1, 2), None)
    with pytest.raises(IndexError):
        _ = fragments[1]


@pytest.mark.parametrize(
    ("major", "minor", "version"),
    [(0, 0, "0.1"), (0, 2, "0.1"), (0, 3, "2.0"), (2, 0, "2.0"), (2, 2, "2.2"), (3, 1, "3.1")],
)
def test_data_files_name_their_version(major: int, minor: int, version: str) -> None:
    assert DataFile("x", (), (), (major, minor), None, None).version == version


def test_row_counts_of_early_writers_are_not_trusted(make_manifest: Make) -> None:
    manifest = table_pb2.Manifest(version=1)
    manifest.fragments.add(id=0, physical_rows=90, files=[{"path": "x", "fields": [0]}])
    assert read_manifest(make_manifest(manifest), "here").fragments.row_counts() is None
    assert read_manifest(make_manifest(manifest), "here").fragments[0].physical_rows == 0
    manifest.writer_version.library = "lance"
    assert read_manifest(make_manifest(manifest), "here").fragments.row_counts() == (90,)


@pytest.mark.parametrize(
    "change",
    [
        {"files": [{"path": "x", "fields": [0, 1], "column_indices": [0]}]},
        {"physical_rows": 2, "deletion_file": {"num_deleted_rows": 3}},
        {"deletion_file": {"file_type": 2}},
        {"id": 2**32},
        {"physical_rows": 2**40},
    ],
)
def test_contradictory_fragments_are_corrupt(make_manifest: Make, change: dict[str, Any]) -> None:
    manifest = table_pb2.Manifest(version=1, fragments=[change])
    with pytest.raises(CorruptError):
        _ = read_manifest(make_manifest(manifest), "here").fragments[0]


def test_broken_files_are_corrupt(make_manifest: Make) -> None:
    good = make_manifest(whole())
    far = good[:-16] + struct.pack("<QHH4s", len(good), 0, 2, b"LANC")
    for data in (b"", good[:10], good[:-1], good[:-4] + b"PAR1", far, b"\xff" * 100 + good[-16:]):
        with pytest.raises(CorruptError):
            read_manifest(data, "here")


@given(st.data())
def test_flipped_bytes_raise_errors_of_this_package_only(data: st.DataObject) -> None:
    body = whole().SerializeToString()
    raw = bytearray(struct.pack("<I", len(body)) + body + struct.pack("<QHH4s", 0, 0, 2, b"LANC"))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(LanceDuckError):
        manifest = read_manifest(bytes(raw), "here")
        _ = manifest.timestamp, manifest.schema.arrow, list(manifest.fragments), manifest.fragments.row_counts()
        _ = manifest.indices, manifest.inline_transaction, manifest.summary()


def test_sections_beyond_the_end_are_corrupt(make_manifest: Make) -> None:
    manifest = table_pb2.Manifest(version=1, transaction_section=10_000, index_section=2**63)
    broken = read_manifest(make_manifest(manifest), "here")
    with pytest.raises(CorruptError):
        _ = broken.indices
    with pytest.raises(CorruptError):
        _ = broken.inline_transaction


def test_the_transaction_of_older_writers_is_found(make_manifest: Make) -> None:
    transaction = transaction_pb2.Transaction(uuid="old")
    body = transaction.SerializeToString()
    section = struct.pack("<I", len(body)) + body
    manifest = table_pb2.Manifest(version=1, transaction_section_deprecated=0).SerializeToString()
    data = section + struct.pack("<I", len(manifest)) + manifest + struct.pack("<QHH4s", len(section), 0, 1, b"LANC")
    assert read_manifest(data, "here").inline_transaction == transaction


def test_an_index_without_a_uuid_is_corrupt(make_manifest: Make) -> None:
    data = make_manifest(whole(), None, table_pb2.IndexSection(indices=[{"name": "i"}]))
    with pytest.raises(CorruptError, match="uuid"):
        _ = read_manifest(data, "here").indices


def test_unknown_reader_flags_are_rejected_by_number_and_name(make_manifest: Make) -> None:
    check_readable(READABLE, "here")
    assert flag_names(1 | 64) == ["1 (deletion files)", "64 (data overlay files)"]
    for flag, name in ((512, "unknown"), (131072, "unknown"), (2**40, "unknown")):
        data = make_manifest(table_pb2.Manifest(version=1, reader_feature_flags=flag | 2))
        with pytest.raises(UnsupportedError, match=rf"flags {flag} \({name}\)"):
            read_manifest(data, "here")
        read_manifest(make_manifest(table_pb2.Manifest(version=1, writer_feature_flags=flag)), "here")


def test_transactions_name_their_operation() -> None:
    proto = transaction_pb2.Transaction(
        read_version=3, uuid="u", update_config={}, transaction_properties={"__lance_commit_message": "why"}
    )
    transaction = read_transaction(proto.SerializeToString(), "here")
    assert (transaction.operation, transaction.commit_message) == ("UpdateConfig", "why")
    assert transaction.transaction_properties == {"__lance_commit_message": "why"}
    assert transaction.message == proto.update_config
    with pytest.raises(CorruptError):
        read_transaction(b"\xff", "here")


def test_an_operation_of_a_newer_format_is_shown_as_unknown() -> None:
    proto = transaction_pb2.Transaction.FromString(b"\xfa\x07\x02\x08\x01")  # field 127
    transaction = transaction_from_proto(proto)
    assert (transaction.operation, transaction.message, transaction.unknown_fields) == ("Unknown", None, (127,))
