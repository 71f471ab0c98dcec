"""Index segments in the manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from lance_duck.errors import CorruptError
from lance_duck.wire import paths
from lance_duck.wire.pb import table_pb2

FRAGMENT_REUSE = "__lance_frag_reuse"
MEM_WAL = "__lance_mem_wal"
SYSTEM = (FRAGMENT_REUSE, MEM_WAL)
"""Names of index segments that do not belong to column indexes."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class IndexMetadata:
    """One segment of an index.

    Attributes:
        name: Name of the index, shared by its segments.
        fields: Ids of the indexed fields. Empty for system indexes.
        dataset_version: Table version from which the segment was built.
        fragment_bitmap: Serialized 32-bit roaring bitmap of the covered fragment ids, or None if unknown.
        details_type: Type url of the details, or None if the message lacks details.
        details: Serialized details.
        version: Version of the segment's layout.
        base_id: Id of the base path to which the directory is relative, or None for the root of the table.
        files: (path relative to the directory, size in bytes) of each file. Empty if unknown.
        proto: The complete message.
    """

    uuid: UUID
    name: str
    fields: tuple[int, ...]
    dataset_version: int
    fragment_bitmap: bytes | None
    details_type: str | None
    details: bytes
    version: int
    created_at: datetime | None
    base_id: int | None
    files: tuple[tuple[str, int], ...]
    proto: table_pb2.IndexMetadata = field(repr=False, compare=False)

    @property
    def keys(self) -> tuple[int, ...]:
        """Ids of the fields that can be searched. The remaining `fields` are covering fields, which are only stored."""
        covering = self.proto.covering_fields
        return tuple(field_id for field_id in self.fields if field_id not in covering) if covering else self.fields

    @property
    def directory(self) -> str:
        """Directory of the files, relative to the table root or to a base path that is a dataset root."""
        return paths.index_directory(self.uuid)


def index_from_proto(proto: table_pb2.IndexMetadata, where: str) -> IndexMetadata:
    """Build the metadata of a segment from its message.

    Raises:
        CorruptError: The UUID does not have 16 bytes.
    """
    raw = proto.uuid.uuid
    if len(raw) != 16:
        raise CorruptError(f"invalid uuid of index {proto.name!r}", where=where, expected="16 bytes", found=len(raw))
    has_details = proto.HasField("index_details")
    return IndexMetadata(
        uuid=UUID(bytes=raw),
        name=proto.name,
        fields=tuple(proto.fields),
        dataset_version=proto.dataset_version,
        fragment_bitmap=proto.fragment_bitmap or None,
        details_type=proto.index_details.type_url if has_details else None,
        details=proto.index_details.value,
        version=proto.index_version,
        created_at=_created_at(proto),
        base_id=proto.base_id if proto.HasField("base_id") else None,
        files=tuple((f.path, f.size_bytes) for f in proto.files),
        proto=proto,
    )


def revised(segment: IndexMetadata, **fields: Any) -> IndexMetadata:
    """Return a segment with some message fields replaced."""
    proto = table_pb2.IndexMetadata()
    proto.CopyFrom(segment.proto)
    for name, value in fields.items():
        setattr(proto, name, value)
    return index_from_proto(proto, str(segment.uuid))


def index_to_proto(
    uuid: UUID,
    name: str,
    field_id: int,
    dataset_version: int,
    fragment_bitmap: bytes,
    details: tuple[str, bytes],
    version: int,
    files: Sequence[tuple[str, int]],
) -> table_pb2.IndexMetadata:
    """Build the message of a new segment, created now.

    Args:
        uuid: UUID of the segment.
        name: Name of the index.
        field_id: Id of the indexed field.
        dataset_version: Table version from which the segment was built.
        fragment_bitmap: Serialized 32-bit roaring bitmap of the covered fragment ids.
        details: Type url and serialized message of the details.
        version: Version of the segment's layout.
        files: (path relative to the directory, size in bytes) of each file.
    """
    proto = table_pb2.IndexMetadata(
        uuid={"uuid": uuid.bytes},
        fields=[field_id],
        name=name,
        dataset_version=dataset_version,
        fragment_bitmap=fragment_bitmap,
        index_version=version,
        created_at=round((datetime.now(UTC) - _EPOCH) / timedelta(milliseconds=1)),
        files=[{"path": path, "size_bytes": size} for path, size in files],
    )
    proto.index_details.type_url, proto.index_details.value = details
    return proto


def _created_at(proto: table_pb2.IndexMetadata) -> datetime | None:
    if not proto.HasField("created_at"):
        return None
    try:
        return _EPOCH + timedelta(milliseconds=proto.created_at)
    except OverflowError:
        return None
