"""Seals: the checksums of small files that are read whole, deletion files and manifests.

A seal has two marks: a file with one of them is damaged, one with neither has no checksum.

Deletion file: 24 bytes, at the end of a roaring bitmap, between the end of the stream and the footer of an Arrow file

    offset | size | field (little-endian)
    0      | 8    | digest of the file without these 24 bytes
    8      | 6    | first mark "LDSEAL"
    14     | 1    | version, 1
    15     | 1    | algorithm, see `digests`
    16     | 8    | second mark "LDCKSUM1"

Manifest: 28 bytes, field 50001, the last one of its message, directly before the footer of the file

    0      | 4    | first mark: tag of the field, and its 24 bytes
    4      | 8    | second mark "LDCKSUM1": version 1, XXH3-64
    12     | 8    | version of the table
    20     | 8    | digest of the file without these 28 bytes

A writer that keeps fields that it does not know would copy the seal of another manifest: one of another writer, and of
another version than its manifest, is passed over.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

import xxhash

from lance_duck.checksums.container import MAGIC, damaged
from lance_duck.checksums.digests import ALGORITHM
from lance_duck.errors import UnsupportedError

MANIFEST_SEAL: Final = 28

_DELETIONS: Final = struct.Struct("<Q6sBB8s")
_NAME: Final = b"LDSEAL"
_VERSION: Final = 1
_MARKS: Final = _NAME + bytes((_VERSION, ALGORITHM)) + MAGIC
_MANIFEST: Final = struct.Struct("<4s8sQQ")
_TAG: Final = b"\x8a\xb5\x18\x18"
_ARROW_END: Final = 10  # i32 size of the footer, "ARROW1"


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of a manifest.

    Attributes:
        version: Version of the table that it is for.
        is_intact: Whether the manifest is what was sealed.
    """

    version: int
    is_intact: bool


def seal_deletions(data: bytes, suffix: str) -> bytes:
    """Return a deletion file with its seal.

    Args:
        data: The whole file.
        suffix: "arrow" or "bin".
    """
    at = _place(data, suffix)
    seal = _DELETIONS.pack(_digest(data), _NAME, _VERSION, ALGORITHM, MAGIC)
    return data[:at] + seal + data[at:]


def unsealed_deletions(data: bytes, suffix: str, where: str) -> tuple[bytes, bool]:
    """Return a deletion file without its seal, and whether it had one.

    Args:
        data: The whole file.
        suffix: "arrow" or "bin".
        where: Name of the file, for messages.

    Raises:
        CorruptError: The file is not what was written.
        UnsupportedError: A seal of another kind.
    """
    at = _place(data, suffix)
    seal = data[max(0, at - _DELETIONS.size) : at].rjust(_DELETIONS.size)
    own, name, version, algorithm, magic = _DELETIONS.unpack(seal)
    if name != _NAME and magic != MAGIC:
        if _MARKS in data:  # the size of the footer is damaged
            raise damaged("the file", where)
        return data, False
    if name != _NAME or magic != MAGIC:
        raise damaged("the file", where)
    content = data[: at - _DELETIONS.size] + data[at:]
    is_intact = _digest(content) == own
    if (version, algorithm) != (_VERSION, ALGORITHM) and not is_intact:
        raise UnsupportedError(
            "seal of another kind",
            where=where,
            expected=f"version {_VERSION}, algorithm {ALGORITHM}",
            found=f"version {version}, algorithm {algorithm}",
            remedy="the file is damaged, or a newer version of lance_duck wrote it",
        )
    if (version, algorithm) != (_VERSION, ALGORITHM) or not is_intact:
        raise damaged("the file", where)
    return content, True


def manifest_seal(version: int, before: bytes, after: bytes) -> bytes:
    """Return the seal of a manifest.

    Args:
        version: Version of the table.
        before: All bytes of the file before the seal.
        after: The footer.
    """
    return _MANIFEST.pack(_TAG, MAGIC, version, _digest(before, after))


def read_seal(data: bytes, end: int, where: str) -> Seal | None:
    """Return the seal of a manifest; None if it has none.

    Args:
        data: The whole file.
        end: Where its footer begins.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The seal itself is damaged.
    """
    start = end - MANIFEST_SEAL
    if start < 0:
        return None
    tag, magic, version, own = _MANIFEST.unpack_from(data, start)
    if tag != _TAG and magic != MAGIC:
        return None
    if tag != _TAG or magic != MAGIC:
        raise damaged("the manifest", where)
    return Seal(version, _digest(memoryview(data)[:start], data[end:]) == own)


def _place(data: bytes, suffix: str) -> int:
    """Return where the seal of a deletion file ends."""
    if suffix == "bin" or len(data) < _ARROW_END:
        return len(data)
    return max(0, len(data) - _ARROW_END - int.from_bytes(data[-_ARROW_END : -_ARROW_END + 4], "little"))


def _digest(*parts: bytes | memoryview) -> int:
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return state.intdigest()
