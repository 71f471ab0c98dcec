"""Fragments as messages of a manifest or a transaction: the inverse of `wire.fragment`."""

from __future__ import annotations

from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import DataFile, DeletionFile, ExternalFile, Fragment
from lance_duck.wire.pb import table_pb2

_DELETION_TYPES = {"arrow": 0, "bin": 1}
_SEQUENCES = {
    "row_ids": "row_ids",
    "created_at": "created_at_versions",
    "last_updated_at": "last_updated_at_versions",
}


def fragment_to_proto(fragment: Fragment, base: table_pb2.DataFragment | None = None) -> table_pb2.DataFragment:
    """Build the message of a fragment.

    Args:
        fragment: The fragment.
        base: An earlier message of the fragment. Its fields that `Fragment` does not model are kept.
    """
    proto = table_pb2.DataFragment()
    if base is not None:
        proto.CopyFrom(base)
        protos = {_file_key(file): file for file in proto.files}
        overlays = {_file_key(overlay.data_file): overlay for overlay in proto.overlays}
        for name in ("files", "overlays", "deletion_file", *_sequence_fields()):
            proto.ClearField(name)
    else:
        protos, overlays = {}, {}
    proto.id = fragment.id
    proto.physical_rows = fragment.physical_rows
    for file in fragment.files:
        old_proto = protos.get((file.base_id, file.path))
        proto.files.append(data_file_to_proto(file, old_proto))
    for overlay in fragment.overlays:
        old_overlay = overlays.get((overlay.file.base_id, overlay.file.path))
        proto.overlays.append(overlay_to_proto(overlay, old_overlay))
    if fragment.deletion_file is not None:
        proto.deletion_file.CopyFrom(deletion_to_proto(fragment.deletion_file))
    for attribute, field in _SEQUENCES.items():
        _set_sequence(proto, field, getattr(fragment, attribute))
    return proto


def data_file_to_proto(file: DataFile, base: table_pb2.DataFile | None = None) -> table_pb2.DataFile:
    """Build the message of a data file. `base` is an earlier message of the file: see `fragment_to_proto`."""
    proto = table_pb2.DataFile()
    if base is not None:
        proto.CopyFrom(base)
        for name in ("fields", "column_indices", "base_id"):
            proto.ClearField(name)
    proto.path = file.path
    proto.fields.extend(file.fields)
    proto.column_indices.extend(file.column_indices)
    proto.file_major_version, proto.file_minor_version = file.file_version
    proto.file_size_bytes = file.file_size or 0
    if file.base_id is not None:
        proto.base_id = file.base_id
    return proto


def overlay_to_proto(overlay: Overlay, base: table_pb2.DataOverlayFile | None = None) -> table_pb2.DataOverlayFile:
    """Build the message of an overlay. `base` is an earlier message of the overlay: see `fragment_to_proto`."""
    proto = table_pb2.DataOverlayFile()
    if base is not None:
        proto.CopyFrom(base)
        proto.ClearField("field_coverage")
    proto.data_file.CopyFrom(data_file_to_proto(overlay.file, None if base is None else base.data_file))
    proto.committed_version = overlay.committed_version
    if overlay.is_shared:
        (proto.shared_offset_bitmap,) = overlay.bitmaps
    else:
        proto.field_coverage.offset_bitmaps.extend(overlay.bitmaps)
    return proto


def deletion_to_proto(file: DeletionFile) -> table_pb2.DeletionFile:
    """Build the message of a deletion file."""
    proto = table_pb2.DeletionFile(
        read_version=file.read_version, id=file.id, num_deleted_rows=file.num_deleted_rows, base_id=file.base_id
    )
    proto.file_type = _DELETION_TYPES[file.suffix]  # type: ignore[assignment]
    return proto


def _file_key(file: table_pb2.DataFile) -> tuple[int | None, str]:
    return file.base_id if file.HasField("base_id") else None, file.path


def _sequence_fields() -> list[str]:
    return [f"{place}_{name}" for name in _SEQUENCES.values() for place in ("inline", "external")]


def _set_sequence(proto: table_pb2.DataFragment, field: str, stored: bytes | ExternalFile | None) -> None:
    if isinstance(stored, bytes):
        setattr(proto, f"inline_{field}", stored)
    elif stored is not None:
        external = table_pb2.ExternalFile(path=stored.path, offset=stored.offset, size=stored.size)
        getattr(proto, f"external_{field}").CopyFrom(external)
