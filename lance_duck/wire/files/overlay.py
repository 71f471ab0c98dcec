"""Data overlays in manifests: files with new values for some cells of a fragment.

    DataOverlayFile  {1 DataFile, 2 a bitmap for all fields | 4 {1 a bitmap for each field}, 3 committed version}

A bitmap is a portable 32-bit roaring bitmap of physical row offsets. Row i of the file contains the new value for the
i-th offset, counted from 0. The overlay with the higher version takes precedence. Among overlays with the same version,
later entries of the list take precedence. `Fragment.overlays` is in the order of `newest_last`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

from lance_duck.errors import CorruptError
from lance_duck.wire.files.data_file import TOMBSTONE, DataFile, data_file_from_proto
from lance_duck.wire.pb import table_pb2


@dataclass(frozen=True, slots=True)
class Overlay:
    """A file whose values replace some cells of a fragment.

    Attributes:
        file: The file that contains the values. Its columns may differ in row count.
        bitmaps: Serialized bitmaps of offsets: one for all fields of the file, or one for each field.
        committed_version: First version in which the values apply.
        is_shared: Whether there is one bitmap for all fields.
    """

    file: DataFile
    bitmaps: tuple[bytes, ...]
    committed_version: int
    is_shared: bool

    def bitmap_of(self, field_id: int) -> bytes | None:
        """Return the serialized offsets of a field, or None if the file does not store the field."""
        if self.file.column_of(field_id) is None:
            return None
        return self.bitmaps[0 if self.is_shared else self.file.fields.index(field_id)]

    def without(self, field_ids: Set[int]) -> Overlay | None:
        """Return the overlay without some fields. Returns None if no other fields remain."""
        fields = tuple(TOMBSTONE if i in field_ids else i for i in self.file.fields)
        if all(i == TOMBSTONE for i in fields):
            return None
        return replace(self, file=replace(self.file, fields=fields))


def newest_last(overlays: Iterable[Overlay]) -> tuple[Overlay, ...]:
    """Return overlays in ascending precedence."""
    return tuple(sorted(overlays, key=lambda overlay: overlay.committed_version))


def without_fields(overlays: Iterable[Overlay], field_ids: Set[int]) -> tuple[Overlay, ...]:
    """Remove the values of some fields from overlays. Overlays without other fields are dropped."""
    return tuple(smaller for overlay in overlays if (smaller := overlay.without(field_ids)) is not None)


def overlay_from_proto(proto: table_pb2.DataOverlayFile, where: str) -> Overlay:
    """Build an overlay from its message.

    Raises:
        CorruptError: The message lacks a file, or has the wrong number of bitmaps.
    """
    if not proto.data_file.path:
        raise CorruptError("the overlay does not have a file", where=where)
    file = data_file_from_proto(proto.data_file, where)
    is_shared = proto.WhichOneof("coverage") == "shared_offset_bitmap"
    bitmaps = (proto.shared_offset_bitmap,) if is_shared else tuple(proto.field_coverage.offset_bitmaps)
    if not is_shared and (len(bitmaps) != len(file.fields) or not bitmaps):
        raise CorruptError(
            "wrong number of bitmaps in an overlay",
            where=f"{where}: {file.path}",
            expected=f"one, or {len(file.fields)}",
            found=len(bitmaps),
        )
    return Overlay(file, bitmaps, proto.committed_version, is_shared)
