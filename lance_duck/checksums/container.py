"""The checksums of a data file or index file: one block directly before its global buffer 0, not listed in any table.

    extents, digests       u32, u32                   how many follow
    extents                each u64, u64              position and size of the bytes before the block, ascending
    digests                each u64                   per extent block, in order
    zeros                                             up to a multiple of 64, less the trailer
    trailer                48 bytes

    offset | size | trailer field (little-endian)
    0      | 8    | file size in bytes
    8      | 8    | digest of global buffer 0 and all following bytes
    16     | 8    | block size in bytes, a multiple of 64
    24     | 8    | digest over the block without its trailer
    32     | 4    | version, 1
    36     | 2    | algorithm, see `digests`
    38     | 2    | log2 of the bytes per digest, 16
    40     | 8    | magic "LDCKSUM1"

Global buffer 0, the `FileDescriptor`, ends with field 50001, which stores the position and size of the block, u64 each.
A file that has only the field or only the magic is damaged. A file with neither was written without checksums. The
file's tables do not list the block. Other readers therefore ignore it, and copies of pages do not include it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.checksums.digests import ALGORITHM, BLOCK, LOG2_BLOCK, Digests, digest, num_blocks
from lance_duck.errors import CorruptError, UnsupportedError

MAGIC: Final = b"LDCKSUM1"
VERSION: Final = 1
TRAILER: Final = struct.Struct("<QQQQIHH8s")
KIND: Final = (VERSION, ALGORITHM, LOG2_BLOCK)
MARK_BYTES: Final = 20
"""Size of field 50001 at the end of the descriptor, in bytes."""

_COUNTS: Final = struct.Struct("<II")
_PLACE: Final = struct.Struct("<QQ")
_ALIGNMENT: Final = 64
_TAG: Final = b"\x8a\xb5\x18\x10"  # field 50001, bytes, 16 of them
Extents = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Trailer:
    """The end of a checksum block.

    Attributes:
        file_size: Size of the file in bytes.
        tail: Digest of global buffer 0 and all following bytes.
        size: Size of the block in bytes, including the trailer.
        digest: Digest of the block without its trailer.
        kind: Version, algorithm, and log2 of the number of bytes that a digest covers.
    """

    file_size: int
    tail: int
    size: int
    digest: int
    kind: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Checksums:
    """The checksums of a file.

    Attributes:
        extents: uint64, one row for each extent: position and size in the file, ascending.
        digests: uint64, block digests of each extent, in order.
    """

    extents: Extents
    digests: Digests


def block_size(num_extents: int, num_digests: int) -> int:
    """Return the size of a block in bytes."""
    size = _COUNTS.size + 16 * num_extents + 8 * num_digests
    return size + -(size + TRAILER.size) % _ALIGNMENT + TRAILER.size


def block_bytes(
    extents: Sequence[tuple[int, int]], block_digests: Sequence[Digests], tail: bytes, position: int
) -> bytes:
    """Return the bytes of a block.

    Args:
        extents: Position and size of each range of bytes written before the block, ascending.
        block_digests: For each extent, the digests of its blocks.
        tail: Global buffer 0 and all following bytes.
        position: Offset of the block in the file.
    """
    all_digests = np.concatenate(block_digests) if block_digests else np.empty(0, np.uint64)
    size = block_size(len(extents), len(all_digests))
    body = b"".join(
        (
            _COUNTS.pack(len(extents), len(all_digests)),
            np.array(extents, "<u8").tobytes(),
            all_digests.astype("<u8").tobytes(),
        )
    ).ljust(size - TRAILER.size, b"\0")
    end = (position + size + len(tail), digest(tail), size, digest(body))
    return body + TRAILER.pack(*end, *KIND, MAGIC)


def mark(position: int, size: int) -> bytes:
    """Return the last field of the descriptor, which holds the position and size of the block."""
    return _TAG + _PLACE.pack(position, size)


def read_mark(descriptor: bytes) -> tuple[int, int] | None:
    """Return the block's position and size from a descriptor, or None if the descriptor does not name a block."""
    end = descriptor[-MARK_BYTES:]
    return _PLACE.unpack(end[len(_TAG) :]) if len(end) == MARK_BYTES and end.startswith(_TAG) else None


def read_trailer(data: bytes) -> Trailer | None:
    """Return the trailer of the block that ends with these bytes, or None if they are not the end of a block."""
    if not data.endswith(MAGIC) or len(data) < TRAILER.size:
        return None
    file_size, tail, size, own, *kind, _ = TRAILER.unpack(data[-TRAILER.size :])
    return Trailer(file_size, tail, size, own, tuple(kind))


def has_trailer(end: bytes, file_size: int) -> bool:
    """Return whether the end of a file contains a trailer for a file of this size."""
    at = end.find(MAGIC)
    while at >= 0:
        trailer = read_trailer(end[max(0, at + len(MAGIC) - TRAILER.size) : at + len(MAGIC)])
        if trailer is not None and trailer.file_size == file_size:
            return True
        at = end.find(MAGIC, at + 1)
    return False


def check_tail(end: bytes | NDArray[np.uint8], trailer: Trailer, file_size: int, where: str) -> None:
    """Compare global buffer 0 and all following bytes with their digest.

    Args:
        end: Global buffer 0 and all following bytes.
        trailer: The trailer of the block before them.
        file_size: Size of the file in bytes.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The bytes do not match their digest, or the trailer is damaged.
        UnsupportedError: The version or algorithm of the checksums is not supported.
    """
    is_intact = trailer.file_size == file_size and digest(end) == trailer.tail
    if trailer.kind == KIND and not is_intact:
        raise damaged(f"the metadata, {len(end):,} bytes at {file_size - len(end):,},", where)
    if trailer.kind != KIND:
        if is_intact:  # the digest is XXH3-64, so the stored kind is damaged
            raise damaged("its checksums themselves", where)
        raise UnsupportedError(
            "the file has checksums of an unknown kind",
            where=where,
            expected=_kind_text(KIND),
            found=_kind_text(trailer.kind),
            remedy='open the table with storage_options={"checksums": "false"}',
        )


def read_checksums(data: bytes, trailer: Trailer, where: str) -> Checksums:
    """Return the checksums that a block holds.

    Args:
        data: The whole block.
        trailer: Its trailer.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The block is damaged.
    """
    num_extents, num_digests = _counts(data, trailer, where)
    extents = np.frombuffer(data, "<u8", 2 * num_extents, _COUNTS.size).reshape(num_extents, 2)
    block_digests = np.frombuffer(data, "<u8", num_digests, _COUNTS.size + extents.nbytes)
    if int(num_blocks(extents[:, 1]).sum()) != num_digests or not _ascend(extents, trailer.file_size):
        raise damaged("its checksums themselves", where)
    return Checksums(extents, block_digests)


def check_extents(file: bytes, data: bytes, trailer: Trailer, where: str) -> None:
    """Compare a small file with its checksums. Faster than `read_checksums` followed by a digest of each block.

    Args:
        file: All of the file.
        data: Its block of checksums.
        trailer: The trailer of that block.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The block of checksums, or an extent that it covers, is damaged.
    """
    num_extents, num_digests = _counts(data, trailer, where)
    numbers = struct.unpack_from(f"<{2 * num_extents + num_digests}Q", data, _COUNTS.size)
    places, sums = numbers[: 2 * num_extents], iter(numbers[2 * num_extents :])
    view = memoryview(file)
    for position, size in zip(places[::2], places[1::2], strict=True):
        for at in range(position, position + size, BLOCK):
            piece = view[at : min(at + BLOCK, position + size)]
            if digest(piece) != next(sums, None):
                raise damaged(f"{len(piece):,} bytes at {at:,}", where)


def _counts(data: bytes, trailer: Trailer, where: str) -> tuple[int, int]:
    """Return the numbers of extents and digests of a block. Raises CorruptError if the block is damaged."""
    if digest(memoryview(data)[: -TRAILER.size]) == trailer.digest:
        num_extents, num_digests = _COUNTS.unpack_from(data)
        if block_size(num_extents, num_digests) == len(data):
            return num_extents, num_digests
    raise damaged("its checksums themselves", where)


def damaged(what: str, where: str) -> CorruptError:
    """Return the error for bytes that do not match their checksum."""
    return CorruptError(
        f"checksum does not match: {what} changed since the file was written",
        where=where,
        remedy="the disk or a copy damaged the file; `lance-duck validate` lists all damaged files",
    )


def _kind_text(kind: tuple[int, int, int]) -> str:
    version, algorithm, log2_block = kind
    return f"version {version}, algorithm {algorithm}, blocks of 2^{log2_block} bytes"


def _ascend(extents: Extents, file_size: int) -> bool:
    ends = extents.sum(axis=1)
    return bool((extents <= file_size).all() and (ends[:-1] <= extents[1:, 0]).all() and (ends <= file_size).all())
