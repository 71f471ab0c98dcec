"""The block of checksums of a data file."""

from __future__ import annotations

import numpy as np
import pytest

from lance_duck.checksums.container import (
    MARK_BYTES,
    TRAILER,
    block_bytes,
    block_size,
    check_extents,
    check_tail,
    mark,
    read_checksums,
    read_mark,
    read_trailer,
)
from lance_duck.checksums.digests import digest, digests
from lance_duck.errors import CorruptError, UnsupportedError

BUFFERS = [(0, b"a" * 70_000), (70_016, b"b" * 10)]
TAIL = b"descriptor and what follows"
POSITION = 70_080


def block() -> bytes:
    extents = [(position, len(data)) for position, data in BUFFERS]
    return block_bytes(extents, [digests(data) for _, data in BUFFERS], TAIL, POSITION)


def test_a_checksum_block_returns_the_stored_digests() -> None:
    data = block()
    trailer = read_trailer(data)
    assert trailer is not None
    assert (trailer.size, trailer.file_size) == (len(data), POSITION + len(data) + len(TAIL))
    assert trailer.tail == digest(TAIL)
    checksums = read_checksums(data, trailer, "f")
    assert checksums.extents.tolist() == [[0, 70_000], [70_016, 10]]
    assert checksums.digests.tolist() == [*digests(BUFFERS[0][1]).tolist(), digest(b"b" * 10)]


@pytest.mark.parametrize("extents", range(9))
def test_block_size_is_predictable_and_a_multiple_of_64(extents: int) -> None:
    places = [(64 * i, 1) for i in range(extents)]
    data = block_bytes(places, [digests(b"x")] * extents, TAIL, 64 * extents)
    assert len(data) == block_size(extents, extents)
    assert len(data) % 64 == 0


def test_the_mark_ends_a_descriptor() -> None:
    assert len(mark(1, 2)) == MARK_BYTES
    assert read_mark(b"descriptor" + mark(640, 128)) == (640, 128)
    assert read_mark(b"descriptor") is None
    assert read_mark(b"") is None


def test_bytes_without_the_magic_are_not_a_block() -> None:
    assert read_trailer(b"\0" * TRAILER.size) is None
    assert read_trailer(b"") is None


@pytest.mark.parametrize("place", [-16, -12, -10])
def test_unknown_versions_algorithms_and_block_sizes_are_rejected_by_name(place: int) -> None:
    data = bytearray(block())
    data[place] ^= 2
    trailer = read_trailer(bytes(data))
    assert trailer is not None
    with pytest.raises(UnsupportedError, match=r"the file has checksums of an unknown kind.*\"checksums\": \"false\""):
        check_tail(b"digested by another algorithm", trailer, trailer.file_size, "f")


@pytest.mark.parametrize("place", [-16, -12, -10])
def test_an_unknown_version_with_known_digests_is_damage(place: int) -> None:
    data = bytearray(block())
    data[place] ^= 2
    trailer = read_trailer(bytes(data))
    assert trailer is not None
    with pytest.raises(CorruptError, match="checksum does not match: its checksums themselves changed"):
        check_tail(TAIL, trailer, trailer.file_size, "f")


def test_every_flipped_bit_of_a_checksum_block_is_detected() -> None:
    data = block()
    trailer = read_trailer(data)
    assert trailer is not None
    for bit in range(8 * (len(data) - TRAILER.size)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptError, match="checksum does not match"):
            read_checksums(bytes(flipped), trailer, "f")


def test_a_small_file_is_checked_as_a_whole() -> None:
    data = block()
    trailer = read_trailer(data)
    assert trailer is not None
    file = bytearray(POSITION)
    for position, content in BUFFERS:
        file[position : position + len(content)] = content
    check_extents(bytes(file), data, trailer, "f")
    for place, where in ((5, "65,536 bytes at 0"), (66_000, "4,464 bytes at 65,536"), (70_025, "10 bytes at 70,016")):
        damaged_file = bytearray(file)
        damaged_file[place] ^= 1
        with pytest.raises(CorruptError, match=where):
            check_extents(bytes(damaged_file), data, trailer, "f")
    damaged_block = bytearray(data)
    damaged_block[9] ^= 1
    with pytest.raises(CorruptError, match="its checksums themselves"):
        check_extents(bytes(file), bytes(damaged_block), trailer, "f")


def test_impossible_counts_are_rejected_even_with_a_valid_digest() -> None:
    body = np.array([2**32 - 1, 2**32 - 1], "<u4").tobytes().ljust(80, b"\0")
    data = body + TRAILER.pack(0, 0, 128, digest(body), 1, 1, 16, b"LDCKSUM1")
    trailer = read_trailer(data)
    assert trailer is not None
    with pytest.raises(CorruptError):
        read_checksums(data, trailer, "f")
