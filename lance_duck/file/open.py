"""Opens data files of all versions: the version at the end of the footer determines the container.

offset from the end | size | field (little-endian)
8                   | 2    | major version
6                   | 2    | minor version
4                   | 4    | magic "LANC"
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lance_duck import lazy
from lance_duck.checksums.container import has_trailer
from lance_duck.errors import CorruptError
from lance_duck.file.reader import FOOTER, LEGACY_VERSIONS, MAGIC, LanceFile, open_file
from lance_duck.store.costs import TAIL_BYTES
from lance_duck.store.request import ByteRange, Bytes, ByteSource, Request
from lance_duck.wire.fragment import LEGACY, DataFile

if TYPE_CHECKING:
    from lance_duck.file.v01 import container
else:
    container = lazy.modules(globals(), "lance_duck.file.v01", "container")

__all__ = ["LanceFile", "open_data_file"]

_END = struct.Struct("<HH4s")


def open_data_file(source: ByteSource, named: DataFile | None = None, *, checksums: bool = True) -> Request[LanceFile]:
    """Open a data file of any supported version.

    Args:
        source: The file.
        named: The manifest's entry for the file, if any.
        checksums: Whether bytes are verified if the file has checksums.

    Raises:
        CorruptError: The file is not a Lance file, is cut short, contradicts itself, or does not match its checksums;
            or the manifest assigns columns that a file of its version does not have.
        UnsupportedError: The version is not supported.
    """
    size = min(source.size, TAIL_BYTES)
    if size < FOOTER.size:
        return (yield from open_file(source, checksums=checksums))
    (tail,) = yield [ByteRange(source, source.size - size, size)]
    if _is_legacy(tail, source.size):
        if named is not None and (named.version != LEGACY or named.column_indices):
            raise CorruptError(
                "the version of the data file differs from the manifest",
                where=source.path,
                expected=named.version,
                found=LEGACY,
            )
        return (yield from container.open_legacy(source, tail))
    return (yield from open_file(source, checksums=checksums, tail=tail))


def _is_legacy(tail: Bytes, size: int) -> bool:
    """Return whether a file of `size` bytes is a 0.1 file, rather than a checksummed file with a damaged version."""
    major, minor, magic = _END.unpack(tail[-_END.size :].tobytes())
    return magic == MAGIC and (major, minor) in LEGACY_VERSIONS and not has_trailer(tail.tobytes(), size)
