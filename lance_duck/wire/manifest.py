"""The manifest file: one version of a table.

    [IndexSection]   u32 length, protobuf; at Manifest.index_section
    [Transaction]    u32 length, protobuf; at Manifest.transaction_section (23; older writers: field 21)
    Manifest         u32 length, protobuf; last section
    footer           16 bytes

    offset | size | footer field (little-endian)
    0      | 8    | position of the Manifest section
    8      | 2    | major version, 0
    10     | 2    | minor version, 1 or 2
    12     | 4    | magic "LANC"

Fragments and indices are parsed on access. Opening a table with 100,000 fragments does not build any of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, Message

from lance_duck.checksums.container import damaged
from lance_duck.checksums.sealed import MANIFEST_SEAL, Seal, read_seal
from lance_duck.errors import CorruptError
from lance_duck.wire import flags
from lance_duck.wire.files.dictionaries import with_dictionaries
from lance_duck.wire.fragment import LEGACY, Fragment, Fragments, version_of_first
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.logical import EXTENSION_NAME
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.wire.schema import Schema, schema_from_proto, text_map

FOOTER = struct.Struct("<QHH4s")
MAGIC = b"LANC"

LENGTH = struct.Struct("<I")
WRITER: Final = "lance_duck"
"""Name of the writer in manifests from this package."""
_STABLE: Final = "2.2"
"""File version of new data files if a manifest only declares major version 2."""
_SCHEMAS: Final = 64
# Schemas that contain these names are not shared. Their Arrow types depend on the currently registered extension types.
_EXTENSIONS: Final = (EXTENSION_NAME.encode(), b"bfloat16", b"json")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True, slots=True)
class BasePath:
    """A location for files of a table outside the table root.

    Attributes:
        is_dataset_root: Whether the location has the layout of a table, with files in data/, _deletions/ and _indices/.
            If False, all files are directly below the path.
        path: Absolute path or URI.
    """

    id: int
    name: str | None
    is_dataset_root: bool
    path: str


@dataclass(frozen=True)
class Manifest:
    """One version of a table: its manifest file.

    Attributes:
        path: Path from which the manifest was read.
        size: Size of the file in bytes.
        head: The message. It lacks all fragments but the first if `fragment_bytes` contains them.
        fragment_bytes: All fragments, as they are stored in the message. None if `head` is complete.
    """

    path: str
    size: int
    head: table_pb2.Manifest = field(repr=False)
    _data: bytes = field(repr=False)
    fragment_bytes: bytes | memoryview | None = field(default=None, repr=False)

    @cached_property
    def proto(self) -> table_pb2.Manifest:
        """The complete message."""
        return self.head if self.fragment_bytes is None else _parsed(self._data, self.path).head

    @cached_property
    def shortened(self) -> Manifest | None:
        """The same version with `fragment_bytes`. None if its first fragment does not stand for the others.

        The next version of an append is made from it, without copying and serializing all fragments.
        """
        if self.fragment_bytes is not None:
            return self
        proto = self.proto
        is_legacy = proto.data_format.version in ("", LEGACY)
        if is_legacy or not proto.HasField("max_fragment_id") or not (proto.fragments and proto.fragments[0].files):
            return None
        head = table_pb2.Manifest()
        head.CopyFrom(proto)
        del head.fragments[1:]
        start, end = around_fragments(head)
        message = proto.SerializeToString()
        return replace(self, head=head, fragment_bytes=message[len(start) : len(message) - len(end)])

    @property
    def version(self) -> int:
        """Version number."""
        return self.head.version

    @property
    def branch(self) -> str | None:
        """Branch of the version, or None for main."""
        return self.head.branch or None

    @property
    def tag(self) -> str | None:
        """Label set by the writer, unrelated to the tags of the table."""
        return self.head.tag or None

    @cached_property
    def timestamp(self) -> datetime:
        """Commit time in UTC, truncated to microseconds."""
        stamp = self.head.timestamp
        try:
            return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
        except OverflowError:
            raise CorruptError("the timestamp is out of range", where=self.path, found=stamp.seconds) from None

    @cached_property
    def schema(self) -> Schema:
        """Schema of the table. Versions with the same schema share one object and its caches."""
        proto = table_pb2.Manifest(fields=self.head.fields, schema_metadata=self.head.schema_metadata)
        data = proto.SerializeToString(deterministic=True)
        if any(f.dictionary.length > 0 for f in proto.fields):
            return with_dictionaries(_parse_schema(data), proto.fields, self._data)
        if any(word in data for word in _EXTENSIONS) or any(f.extension_name for f in proto.fields):
            return _parse_schema(data)
        return _shared_schema(data)

    @cached_property
    def fragments(self) -> Fragments:
        """Fragments of the table, in scan order."""
        return Fragments(lambda: self.proto.fragments, self.path, counts_old=self.writer is not None)

    @property
    def reader_flags(self) -> int:
        """Feature flags that a reader must support: see `wire.flags`."""
        return self.head.reader_feature_flags

    @property
    def writer_flags(self) -> int:
        """Feature flags that a writer must support: see `wire.flags`."""
        return self.head.writer_feature_flags

    @property
    def has_stable_row_ids(self) -> bool:
        """Whether rows keep their ids when they move."""
        return bool(self.reader_flags & flags.STABLE_ROW_IDS)

    @property
    def next_row_id(self) -> int:
        """First stable row id that was never assigned."""
        return self.head.next_row_id

    @property
    def max_fragment_id(self) -> int | None:
        """Highest fragment id ever assigned, or None if the manifest does not store it."""
        return self.head.max_fragment_id if self.head.HasField("max_fragment_id") else None

    @cached_property
    def config(self) -> Mapping[str, str]:
        """Settings of the table."""
        return MappingProxyType(dict(self.head.config))

    @cached_property
    def metadata(self) -> Mapping[str, str]:
        """Metadata of the table, without its schema metadata."""
        return MappingProxyType(dict(self.head.table_metadata))

    @cached_property
    def schema_metadata(self) -> Mapping[str, str]:
        """Metadata of the schema."""
        return text_map(self.head.schema_metadata)

    @property
    def data_storage_version(self) -> str:
        """File version for new data files. If an old manifest does not declare it, the first file's version is used.

        In an old table without files, a writer flag indicates version 2.
        """
        stated = self.head.data_format.version or LEGACY
        if stated != LEGACY:
            return stated
        is_of_2 = not self.head.HasField("data_format") and self.writer_flags & flags.VERSION_2_FILES
        return version_of_first(self.head.fragments) or (_STABLE if is_of_2 else LEGACY)

    @property
    def has_legacy_files(self) -> bool:
        """Whether the data files have version 0.1. A table cannot mix 0.1 files with later versions."""
        return version_of_first(self.head.fragments) == LEGACY

    @property
    def writer(self) -> tuple[str, str] | None:
        """Name and version of the library that wrote the manifest, or None if they are not stored."""
        writer = self.head.writer_version
        return (writer.library, writer.version) if self.head.HasField("writer_version") else None

    @cached_property
    def base_paths(self) -> Mapping[int, BasePath]:
        """Base paths by id."""
        return MappingProxyType(
            {b.id: BasePath(b.id, b.name or None, b.is_dataset_root, b.path) for b in self.head.base_paths}
        )

    @property
    def transaction_name(self) -> str | None:
        """Name of the file in _transactions/ that holds the version's transaction, or None if the manifest lacks it."""
        return self.head.transaction_file or None

    @cached_property
    def inline_transaction(self) -> transaction_pb2.Transaction | None:
        """The transaction, or None if the file does not contain it."""
        for name in ("transaction_section", "transaction_section_deprecated"):
            if self.head.HasField(name):
                return self._section(getattr(self.head, name), transaction_pb2.Transaction.FromString, name)
        return None

    @cached_property
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index segments of this version."""
        if not self.head.HasField("index_section"):
            return ()
        section = self._section(self.head.index_section, table_pb2.IndexSection.FromString, "index_section")
        return tuple(index_from_proto(i, self.path) for i in section.indices)

    @property
    def is_sealed(self) -> bool:
        """Whether the manifest has a checksum that matches."""
        seal = read_seal(self._data, len(self._data) - FOOTER.size, self.path)
        return seal is not None and seal.is_intact

    def summary(self) -> dict[str, str]:
        """Return the counts of fragments, files and rows, with pylance's names."""
        return self.fragments.summary()

    def _section(self, position: int, parse: Callable[[bytes], _M], name: str) -> _M:
        return parse_message(section_bytes(self._data, position, f"{self.path} ({name})"), parse, self.path)


_REMEDY: Final = (
    "restore the file from a copy, or read another version with AT (VERSION => n) or dataset(uri, version=n); "
    "DROP TABLE and CREATE OR REPLACE TABLE remove the table"
)


def read_manifest(data: bytes, path: str) -> Manifest:
    """Parse a manifest file.

    Args:
        data: The whole file.
        path: Name of the file, for messages.

    Raises:
        CorruptError: The file is cut short, is not a manifest, or does not match its seal, or its feature flags
            contradict each other.
        UnsupportedError: The reader flags require a feature that is not supported.
    """
    try:
        return _parsed(data, path)
    except CorruptError as error:
        error.remedy = _REMEDY
        raise


def _parsed(data: bytes, path: str) -> Manifest:
    if len(data) < FOOTER.size:
        raise CorruptError(
            "manifest is cut short", where=path, expected=f"at least {FOOTER.size} bytes", found=len(data)
        )
    position, _major, _minor, magic = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    if magic != MAGIC:
        raise CorruptError("wrong magic at the end of the manifest", where=path, expected=MAGIC, found=magic)
    message = section_bytes(data, position, path)
    seal = read_seal(data, len(data) - FOOTER.size, path)
    if seal is not None and position + LENGTH.size + len(message) + FOOTER.size != len(data):
        raise damaged("the manifest", path)
    proto = parse_message(message if seal is None else message[:-MANIFEST_SEAL], table_pb2.Manifest.FromString, path)
    if seal is not None and not _holds(seal, proto):
        raise damaged("the manifest", path)
    reader, writer = proto.reader_feature_flags, proto.writer_feature_flags
    flags.check_consistent(reader, writer, keeps_field_ids=proto.HasField("max_allocated_field_id"), where=path)
    flags.check_readable(reader, path)
    return Manifest(path, len(data), proto, data)


def _holds(seal: Seal, manifest: table_pb2.Manifest) -> bool:
    """Return whether a manifest matches its seal. Returns True for an older seal that another writer copied."""
    if seal.is_intact:
        return seal.version == manifest.version
    return seal.version != manifest.version and manifest.writer_version.library != WRITER


def section_bytes(data: bytes, position: int, where: str) -> bytes:
    """Return the bytes of the section at `position` in a manifest file.

    Raises:
        CorruptError: The section extends into the footer.
    """
    end = len(data) - FOOTER.size
    if position + LENGTH.size <= end:
        start = position + LENGTH.size
        (size,) = LENGTH.unpack_from(data, position)
        if start + size <= end:
            return data[start : start + size]
    raise CorruptError(
        "section reaches beyond the end of the manifest", where=where, expected=f"an end before {end}", found=position
    )


def parse_message(data: bytes, parse: Callable[[bytes], _M], where: str) -> _M:
    """Parse a protobuf message. Raises CorruptError."""
    try:
        return parse(data)
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise CorruptError("the protobuf message is corrupt", where=where, found=str(error)) from error


def added_ids(before: Manifest, after: Manifest) -> list[int]:
    """Return the ids of the fragments that an append added to a version."""
    if after.fragment_bytes is None or (known := before.shortened) is None:
        return [fragment.id for fragment in after.proto.fragments[len(before.proto.fragments) :]]
    added = table_pb2.Manifest.FromString(bytes(after.fragment_bytes[len(known.fragment_bytes or b"") :]))
    return [fragment.id for fragment in added.fragments]


def fragments_within(data: bytes, head: table_pb2.Manifest, size: int) -> memoryview:
    """Return the stored fragments in a manifest file.

    Args:
        data: The whole file.
        head: Its message. It may lack fragments.
        size: Size of the stored fragments in bytes.
    """
    position = FOOTER.unpack_from(data, len(data) - FOOTER.size)[0] + LENGTH.size
    start = position + table_pb2.Manifest(fields=head.fields).ByteSize()
    return memoryview(data)[start : start + size]


def around_fragments(manifest: table_pb2.Manifest) -> tuple[bytes, bytes]:
    """Return the parts of a stored message before and after its fragments."""
    message = manifest.SerializeToString()
    start = table_pb2.Manifest(fields=manifest.fields).ByteSize()
    end = start + table_pb2.Manifest(fragments=manifest.fragments).ByteSize()
    return message[:start], message[end:]


def stored_fragments(fragments: Iterable[table_pb2.DataFragment]) -> bytes:
    """Return fragments as they are stored in the message of a manifest."""
    return table_pb2.Manifest(fragments=fragments).SerializeToString()


def _parse_schema(data: bytes) -> Schema:
    proto = table_pb2.Manifest.FromString(data)
    return schema_from_proto(proto.fields, proto.schema_metadata)


_shared_schema = lru_cache(maxsize=_SCHEMAS)(_parse_schema)


__all__ = ["BasePath", "Fragment", "Fragments", "IndexMetadata", "Manifest", "read_manifest"]
