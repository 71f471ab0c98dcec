"""The bytes of a manifest file; `wire.manifest` has their grammar.

[IndexSection]   only when there are indices
[Transaction]    inline copy of the transaction that made the version
Manifest         its last field is the seal, unless it has none: see `checksums.sealed`
footer
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from lance_duck.checksums.sealed import MANIFEST_SEAL, manifest_seal
from lance_duck.errors import UnsupportedError
from lance_duck.wire.fragment import LEGACY, version_of_first
from lance_duck.wire.manifest import FOOTER, LENGTH, MAGIC, WRITER
from lance_duck.wire.pb import table_pb2, transaction_pb2

_MAJOR, _MINOR = 0, 2


def manifest_file(
    manifest: table_pb2.Manifest,
    transaction: transaction_pb2.Transaction | None,
    indices: Iterable[table_pb2.IndexMetadata] = (),
    *,
    sealed: bool = True,
) -> bytes:
    """Return the whole file of a version.

    Args:
        manifest: Message of the version; the positions of the sections are set in it.
        transaction: Transaction that made the version; None if the manifest only names a transaction file.
        indices: Index segments of the version.
        sealed: Whether the file has a checksum.
    """
    parts: list[bytes] = []
    section = table_pb2.IndexSection(indices=indices)
    for name in ("index_section", "transaction_section", "transaction_section_deprecated"):
        manifest.ClearField(name)
    if section.indices:
        manifest.index_section = _append(parts, section.SerializeToString())
    if transaction is not None:
        manifest.transaction_section = _append(parts, transaction.SerializeToString())
    message = manifest.SerializeToString()
    position = sum(map(len, parts))
    seal_size = MANIFEST_SEAL if sealed else 0
    before = b"".join((*parts, LENGTH.pack(len(message) + seal_size), message))
    footer = FOOTER.pack(position, _MAJOR, _MINOR, MAGIC)
    seal = manifest_seal(manifest.version, before, footer) if sealed else b""
    return b"".join((before, seal, footer))


def stamp_writer(manifest: table_pb2.Manifest, moment: datetime) -> None:
    """Set the writer and the time of a version.

    Raises:
        UnsupportedError: The version has files of 0.1, with facts about them that a new manifest cannot repeat.
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
    """Refuse dictionaries, whose values lie in the old manifest's file, and row counts of writers without a name."""
    if any(f.dictionary.offset or f.dictionary.length for f in manifest.fields):
        table = "a table of version 0.1 with dictionaries"
    elif not manifest.HasField("writer_version"):
        table = "a table of version 0.1 whose row counts may be wrong"
    else:
        return
    raise UnsupportedError(f"change of {table}", remedy="call optimize.compact_files() first, which writes it as 2.2")


@cache
def writer_version() -> str:
    """Return the version of this package, as manifests have it."""
    try:
        return version("lance-duck")
    except PackageNotFoundError:
        return "0+unknown"


def _append(parts: list[bytes], section: bytes) -> int:
    position = sum(map(len, parts))
    parts.append(LENGTH.pack(len(section)))
    parts.append(section)
    return position
