"""The bytes of a manifest file. `wire.manifest` describes their layout.

[dictionaries]   only in tables with 0.1 files: see `wire.files.dictionaries`
[IndexSection]   only when there are indices
[Transaction]    inline copy of the transaction that created the version
Manifest         its last field is the seal, if the file is sealed: see `checksums.sealed`
footer
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

import pyarrow as pa

from lance_duck.checksums.sealed import MANIFEST_SEAL, manifest_seal
from lance_duck.errors import UnsupportedError
from lance_duck.wire.files.dictionaries import values_page
from lance_duck.wire.fragment import LEGACY, version_of_first
from lance_duck.wire.manifest import FOOTER, LENGTH, MAGIC, WRITER, around_fragments
from lance_duck.wire.pb import table_pb2, transaction_pb2

_MAJOR, _MINOR = 0, 2


def manifest_file(
    manifest: table_pb2.Manifest,
    transaction: transaction_pb2.Transaction | None,
    indices: Iterable[table_pb2.IndexMetadata] = (),
    *,
    dictionaries: Mapping[int, pa.Array] = MappingProxyType({}),
    sealed: bool = True,
    fragments: Sequence[bytes | memoryview] | None = None,
) -> bytes:
    """Return the bytes of a version's manifest file.

    Args:
        manifest: Message of the version. This function sets the section positions in it.
        transaction: Transaction that created the version, or None if the manifest only refers to a transaction file.
        indices: Index segments of the version.
        dictionaries: Dictionary values of a table with 0.1 files, by field id.
        sealed: Whether to add a checksum.
        fragments: Parts of all stored fragments, in place of those in the message. None if the message has them.
    """
    parts = _dictionary_pages(manifest, dictionaries)
    section = table_pb2.IndexSection(indices=indices)
    for name in ("index_section", "transaction_section", "transaction_section_deprecated"):
        manifest.ClearField(name)
    if section.indices:
        manifest.index_section = _append(parts, section.SerializeToString())
    if transaction is not None:
        manifest.transaction_section = _append(parts, transaction.SerializeToString())
    message: list[bytes | memoryview] = [manifest.SerializeToString()]
    if fragments is not None:
        start, end = around_fragments(manifest)
        message = [start, *fragments, end]
    position = sum(map(len, parts))
    size = sum(map(len, message)) + (MANIFEST_SEAL if sealed else 0)
    before = (*parts, LENGTH.pack(size), *message)
    footer = FOOTER.pack(position, _MAJOR, _MINOR, MAGIC)
    seal = manifest_seal(manifest.version, *before, footer) if sealed else b""
    return b"".join((*before, seal, footer))


def stamp_writer(manifest: table_pb2.Manifest, moment: datetime) -> None:
    """Set the writer and the time of a version.

    Raises:
        UnsupportedError: The version has 0.1 files whose row counts may be wrong.
    """
    if version_of_first(manifest.fragments) == LEGACY:
        _check_legacy(manifest)
    manifest.writer_version.Clear()
    manifest.writer_version.library = WRITER
    manifest.writer_version.version = writer_version()
    seconds = int(moment.astimezone(UTC).timestamp())
    manifest.timestamp.seconds = seconds
    manifest.timestamp.nanos = moment.microsecond * 1000


def _check_legacy(manifest: table_pb2.Manifest) -> None:
    """Reject row counts for 0.1 files if the manifest does not name its writer."""
    if not manifest.HasField("writer_version"):
        raise UnsupportedError(
            "this table of version 0.1 cannot be changed, because its row counts may be wrong",
            remedy="call optimize.compact_files() first, which rewrites the table as 2.2",
        )


def _dictionary_pages(manifest: table_pb2.Manifest, dictionaries: Mapping[int, pa.Array]) -> list[bytes]:
    """Return the dictionary pages at the beginning of a manifest file, and set their offsets in the fields."""
    parts: list[bytes] = []
    position = 0
    for field in manifest.fields:
        values = dictionaries.get(field.id)
        if values is None:
            if field.dictionary.length:
                field.dictionary.Clear()
            continue
        data, field.dictionary.offset = values_page(values, position)
        field.dictionary.length = len(values)
        parts.append(data)
        position += len(data)
    return parts


@cache
def writer_version() -> str:
    """Return the version of this package in the form that manifests store."""
    try:
        return version("lance-duck")
    except PackageNotFoundError:
        return "0+unknown"


def _append(parts: list[bytes], section: bytes) -> int:
    position = sum(map(len, parts))
    parts.append(LENGTH.pack(len(section)))
    parts.append(section)
    return position
