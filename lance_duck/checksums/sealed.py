"""Seals: the checksums of small files that are read whole: deletion files, manifests, transactions, tags and branches.

A seal has two marks. A file with only one of them is damaged. A file with neither was written without a checksum.

Deletion file: 24 bytes, at the end of a roaring bitmap file, or between the stream and the footer of an Arrow file.

    offset | size | field (little-endian)
    0      | 8    | digest of the file without these 24 bytes
    8      | 6    | first mark "LDSEAL"
    14     | 1    | version, 1
    15     | 1    | algorithm, see `digests`
    16     | 8    | second mark "LDCKSUM1"

Manifest: 28 bytes, field 50001, the last field of its message, directly before the footer of the file

    0      | 4    | first mark: tag of the field, and its 24 bytes
    4      | 8    | second mark "LDCKSUM1": version 1, XXH3-64
    12     | 8    | version of the table
    20     | 8    | digest of the file without these 28 bytes

Transaction: the same 28 bytes at the end of the file, with the number of bytes before them instead of the version

Tag or branch: the last member of a JSON object, which ends the file. The member's name is the first mark, and
"xxh3-64:" is the second mark

    ,⏎  "checksum": "xxh3-64:{16 hex digits}"⏎}    digest of the file with zeros for the digits

Writers that keep unknown fields copy the seal of an older manifest. A seal whose version differs from the manifest's
was copied by another writer, and is ignored.
"""

from __future__ import annotations

import json
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
_JSON_NAME: Final = b',\n  "checksum": "'
_JSON_ALGORITHM: Final = b"xxh3-64:"
_JSON_ZEROS: Final = b"0" * 16
_JSON_END: Final = b'"\n}'


@dataclass(frozen=True, slots=True)
class Seal:
    """The seal of a manifest or a transaction.

    Attributes:
        version: Version of the table for which the seal was written, or the size of a transaction's message.
        is_intact: Whether the file matches the digest in the seal.
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
        CorruptError: The file does not match its seal.
        UnsupportedError: The version or algorithm of the seal is not supported.
    """
    at = _place(data, suffix)
    seal = data[max(0, at - _DELETIONS.size) : at].rjust(_DELETIONS.size)
    own, name, version, algorithm, magic = _DELETIONS.unpack(seal)
    if name != _NAME and magic != MAGIC:
        if _MARKS in data:  # the footer size is damaged, so the seal was not found
            raise damaged("the file", where)
        return data, False
    if name != _NAME or magic != MAGIC:
        raise damaged("the file", where)
    content = data[: at - _DELETIONS.size] + data[at:]
    is_intact = _digest(content) == own
    if (version, algorithm) != (_VERSION, ALGORITHM) and not is_intact:
        raise UnsupportedError(
            "the checksum of the file has an unknown kind",
            where=where,
            expected=f"version {_VERSION}, algorithm {ALGORITHM}",
            found=f"version {version}, algorithm {algorithm}",
            remedy="the file is damaged, or needs a newer version of lance_duck",
        )
    if (version, algorithm) != (_VERSION, ALGORITHM) or not is_intact:
        raise damaged("the file", where)
    return content, True


def manifest_seal(version: int, *parts: bytes | memoryview) -> bytes:
    """Return the seal of a manifest.

    Args:
        version: Version of the table.
        parts: All bytes of the file without the seal, in order.
    """
    return _MANIFEST.pack(_TAG, MAGIC, version, _digest(*parts))


def read_seal(data: bytes, end: int, where: str, what: str = "the manifest") -> Seal | None:
    """Return the seal of a manifest or transaction, or None if the file is not sealed.

    Args:
        data: The whole file.
        end: Offset of the footer, or the size of a transaction file.
        where: Name of the file, for messages.
        what: Kind of the file, for messages.

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
        raise damaged(what, where)
    return Seal(version, _digest(memoryview(data)[:start], data[end:]) == own)


def sealed_transaction(message: bytes) -> bytes:
    """Return a transaction file: a message and its seal."""
    return message + manifest_seal(len(message), message)


def unsealed_transaction(data: bytes, where: str) -> tuple[bytes, bool]:
    """Return the message of a transaction file, and whether it had a seal.

    Args:
        data: The whole file.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The file does not match its seal.
    """
    seal = read_seal(data, len(data), where, "the transaction")
    if seal is None:
        return data, False
    if not seal.is_intact or seal.version != len(data) - MANIFEST_SEAL:
        raise damaged("the transaction", where)
    return data[:-MANIFEST_SEAL], True


def sealed_json(data: bytes) -> bytes:
    """Return a file of JSON with its seal.

    Args:
        data: A JSON object with at least one member, each member on a separate line.
    """
    start = data.removesuffix(b"\n}") + _JSON_NAME + _JSON_ALGORITHM
    return start + _hex(start + _JSON_ZEROS + _JSON_END) + _JSON_END


def check_json(data: bytes, where: str) -> bool:
    """Return whether a file with a JSON object has a seal that matches its members, regardless of formatting.

    Args:
        data: The whole file.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The members of the file are not the ones that were written.
    """
    digits = len(data) - len(_JSON_END) - len(_JSON_ZEROS)
    algorithm = digits - len(_JSON_ALGORITHM)
    has_name = algorithm > 0 and data.endswith(_JSON_NAME, 0, algorithm)
    has_algorithm = algorithm > 0 and data.endswith(_JSON_ALGORITHM, algorithm, digits)
    if not has_name and not has_algorithm and not _has_checksum(data):
        return False
    end = digits + len(_JSON_ZEROS)
    if has_name and has_algorithm and data[digits:end] == _hex(data[:digits] + _JSON_ZEROS + data[end:]):
        return True
    if _is_laid_out_anew(data):
        return True
    raise damaged("the file", where)


def _has_checksum(data: bytes) -> bool:
    """Return whether a JSON object has a seal, which may be at any position."""
    if _JSON_ALGORITHM not in data:
        return False
    try:
        members = json.loads(data)
    except (ValueError, RecursionError):
        return False
    return isinstance(members, dict) and "checksum" in members


def _is_laid_out_anew(data: bytes) -> bool:
    """Return whether JSON has the sealed members but different white space or escapes, for example after editing."""
    try:
        members = json.loads(data)
        seal = members.pop("checksum")
        plain = json.dumps(members, indent=2, ensure_ascii=False).encode()
        return bool(json.loads(sealed_json(plain))["checksum"] == seal)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return False


def _hex(data: bytes) -> bytes:
    return f"{_digest(data):016x}".encode()


def _place(data: bytes, suffix: str) -> int:
    """Return the offset at which the seal of a deletion file ends, or would end."""
    if suffix == "bin" or len(data) < _ARROW_END:
        return len(data)
    return max(0, len(data) - _ARROW_END - int.from_bytes(data[-_ARROW_END : -_ARROW_END + 4], "little"))


def _digest(*parts: bytes | memoryview) -> int:
    state = xxhash.xxh3_64()
    for part in parts:
        state.update(part)
    return state.intdigest()
