from __future__ import annotations

import io
import os
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck
from lance_duck.errors import InvalidInputError
from lance_duck.file.blobs.file import BlobFile
from lance_duck.file.blobs.places import INLINE, BlobPlace
from lance_duck.file.reader import LanceFile
from lance_duck.wire.pb import file_pb2

DATA = bytes(range(100))


class Counted:
    remote = False

    """A source of "....", DATA, "...." that records requests, counted from the start of DATA."""

    path = "counted"
    size = len(DATA) + 8

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        self.asked += [(offset - 4, size) for offset, size in ranges]
        whole = np.frombuffer(b"...." + DATA + b"....", np.uint8)
        return [whole[offset : offset + size] for offset, size in ranges]


def opened(buffer_size: int = 16, size: int = len(DATA)) -> tuple[BlobFile, Counted]:
    source = Counted()
    file = LanceFile(source, (2, 2), 1, 1, file_pb2.FileDescriptor(), [], [])
    return BlobFile(BlobPlace(file, INLINE, 4, size), buffer_size), source


def test_a_blob_reads_bytes_on_demand() -> None:
    blob, source = opened()
    assert (blob.size(), blob.tell(), blob.closed, repr(blob)) == (100, 0, False, "<BlobFile size=100>")
    assert (blob.readable(), blob.seekable(), blob.writable()) == (True, True, False)
    assert source.asked == []
    assert blob.read(3) == DATA[:3]
    assert blob.seek(-5, os.SEEK_END) == 95
    assert blob.read(100) == DATA[95:]
    assert blob.read(1) == b""
    assert blob.seek(10) == 10
    assert blob.seek(5, os.SEEK_CUR) == 15
    assert blob.read_range(50, 2) == DATA[50:52]
    assert blob.read_ranges([(0, 1), (98, 2), (100, 0)]) == [DATA[:1], DATA[98:], b""]
    assert blob.tell() == 15
    assert source.asked == [(0, 3), (95, 5), (50, 2), (0, 1), (98, 2), (100, 0)]
    assert blob.readall() == DATA[15:]
    assert isinstance(blob, lance_duck.BlobFile)


def test_sequential_reads_are_prefetched() -> None:
    blob, source = opened()
    assert b"".join(iter(lambda: blob.read(4), b"")) == DATA
    assert source.asked == [(0, 4), *((at, 16) for at in range(4, 100, 16))]
    blob, source = opened(buffer_size=0)
    assert b"".join(iter(lambda: blob.read(40), b"")) == DATA
    assert source.asked == [(0, 40), (40, 40), (80, 20)]


def test_reads_beyond_the_end_return_nothing() -> None:
    blob, source = opened()
    assert (blob.seek(1000), blob.tell(), blob.read(5), blob.readall(), blob.read1(2)) == (1000, 1000, b"", b"", b"")
    assert source.asked == [] or all(size == 0 for _, size in source.asked)
    empty, _ = opened(size=0)
    assert (empty.size(), empty.read(), empty.read(1)) == (0, b"", b"")


def test_a_blob_works_as_a_python_file() -> None:
    blob, _ = opened()
    buffer = bytearray(7)
    assert blob.readinto(buffer) == 7
    assert buffer == DATA[:7]
    with opened()[0] as blob:
        assert blob.readline() == DATA[:11]
        assert blob.read1() == DATA[11:]
    assert io.TextIOWrapper(opened()[0], "latin-1", newline="").read() == DATA.decode("latin-1")
    with pytest.raises(io.UnsupportedOperation):
        opened()[0].write(b"")


def test_bad_arguments_and_closed_blobs_are_errors() -> None:
    blob, _ = opened()
    for bad in (lambda: blob.seek(-1), lambda: blob.seek(0, 9)):
        with pytest.raises(InvalidInputError):
            bad()
    for offset, length in ((99, 2), (-1, 1), (0, -1), (2**64, 1)):
        with pytest.raises(InvalidInputError):
            blob.read_range(offset, length)
    for size in (-1, True, 1.5, None):
        with pytest.raises(InvalidInputError):
            opened(size)  # type: ignore[arg-type]
    blob.close()
    blob.close()
    assert blob.closed
    assert blob.size() == 100
    for use in (blob.read, blob.readall, blob.tell, lambda: blob.seek(0), lambda: blob.read_range(0, 1)):
        with pytest.raises(ValueError, match="closed"):
            use()


moves = st.one_of(
    st.tuples(st.just("read"), st.integers(-1, 120)),
    st.tuples(st.just("seek"), st.integers(0, 120)),
)


@given(st.lists(moves, max_size=20), st.integers(0, 40))
def test_random_reads_and_seeks_equal_those_of_bytesio(moves: list[tuple[str, int]], buffer_size: int) -> None:
    blob, plain = opened(buffer_size)[0], io.BytesIO(DATA)
    for name, number in moves:
        assert getattr(blob, name)(number) == getattr(plain, name)(number)
        assert blob.tell() == plain.tell()
