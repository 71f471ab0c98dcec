"""A source that compares blocks with their digests when they are first read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.checksums.container import block_bytes, read_trailer
from lance_duck.checksums.digests import BLOCK, digests
from lance_duck.errors import CorruptError
from lance_duck.store.checked import CheckedSource
from lance_duck.store.request import Bytes

SIZES = (10, BLOCK, 3 * BLOCK + 5, 1, 2 * BLOCK)
TAIL = b"the end"


class Memory:
    """A source that records reads."""

    path = "memory"

    def __init__(self, data: bytes, *, remote: bool = False) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.size = len(data)
        self.remote = remote
        self.asked: list[tuple[int, int]] = []

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        self.asked += ranges
        return [self.data[offset : offset + size] for offset, size in ranges]


def written() -> tuple[bytes, list[tuple[int, int]], int]:
    """Return a file, its extents, and the offset of its checksums."""
    content, extents, sums = b"", [], []
    for number, size in enumerate(SIZES):
        content += bytes(-len(content) % 64)
        data = random.Random(number).randbytes(size)
        extents.append((len(content), size))
        sums.append(digests(data))
        content += data
    content += bytes(-len(content) % 64)
    return content + block_bytes(extents, sums, TAIL, len(content)) + TAIL, extents, len(content)


FILE, EXTENTS, POSITION = written()


def source(data: bytes = FILE, *, remote: bool = False) -> tuple[CheckedSource, Memory]:
    memory = Memory(data, remote=remote)
    trailer = read_trailer(FILE[: -len(TAIL)])
    assert trailer is not None
    return CheckedSource(memory, POSITION, trailer), memory


def flipped(*places: int) -> bytes:
    data = bytearray(FILE)
    for place in places:
        data[place] ^= 1
    return bytes(data)


ranges_of_the_file = st.lists(
    st.tuples(st.integers(0, len(FILE)), st.integers(0, 2 * BLOCK)).map(lambda r: (r[0], min(r[1], len(FILE) - r[0]))),
    max_size=12,
)


@given(ranges_of_the_file, st.booleans())
def test_checked_bytes_equal_those_of_the_file(ranges: list[tuple[int, int]], remote: bool) -> None:
    checked, _ = source(remote=remote)
    for _ in range(2):
        assert [piece.tobytes() for piece in checked.read(ranges)] == [FILE[o : o + s] for o, s in ranges]


@given(ranges_of_the_file, st.integers(0, len(EXTENTS) - 1), st.randoms(use_true_random=False))
def test_a_read_fails_only_if_one_of_its_blocks_is_damaged(
    ranges: list[tuple[int, int]], extent: int, generator: random.Random
) -> None:
    start, size = EXTENTS[extent]
    place = start + generator.randrange(size)
    low = start + (place - start) // BLOCK * BLOCK
    high = min(low + BLOCK, start + size)
    checked, _ = source(flipped(place))
    if any(s and offset < high and low < offset + s for offset, s in ranges):
        with pytest.raises(CorruptError, match=f"{high - low:,} bytes at {low:,}"):
            checked.read(ranges)
    else:
        checked.read(ranges)


def test_checked_blocks_are_not_checked_again() -> None:
    checked, memory = source()
    assert not checked.is_checked
    checked.read([(0, POSITION)])
    assert checked.is_checked
    memory.data = np.frombuffer(flipped(5), np.uint8)
    memory.asked.clear()
    checked.read([(0, 10)])
    assert memory.asked == [(0, 10)]


def test_only_the_blocks_of_the_requested_range_are_read() -> None:
    checked, memory = source(remote=True)
    start, _ = EXTENTS[2]
    checked.read([(start + BLOCK + 7, 3)])
    assert memory.asked[1:] == [(start + BLOCK + 7, 3), (start + BLOCK, BLOCK)]


def test_positions_of_upcoming_reads_are_checked() -> None:
    start, _ = EXTENTS[2]
    checked, _ = source(flipped(start + BLOCK + 9))
    for _ in range(2):
        checked.check(start, np.array([0, 2 * BLOCK]), np.array([4, 2 * BLOCK + 4]))
    checked.check(0, np.array([start]), np.array([start + 4]))  # beyond the extent that begins at 0
    for places in ((BLOCK - 2, BLOCK + 2), (0, 3 * BLOCK)):
        with pytest.raises(CorruptError):
            checked.check(start, *(np.array([place]) for place in places))


def test_every_damaged_block_is_listed() -> None:
    start, _ = EXTENTS[2]
    checked, _ = source(flipped(3, start + 3 * BLOCK + 1))
    assert checked.damaged() == checked.damaged() == [(0, 10), (start + 3 * BLOCK, 5)]
    assert source()[0].damaged() == []


def test_damaged_checksums_are_reported_as_damaged() -> None:
    checked, _ = source(flipped(POSITION + 20))
    with pytest.raises(CorruptError, match="its checksums themselves"):
        checked.read([(0, 1)])


def test_concurrent_reads_equal_sequential_reads() -> None:
    checked, _ = source()
    ranges = [(offset, 500) for offset in range(0, POSITION - 500, 777)]
    with ThreadPoolExecutor(8) as pool:
        pieces = list(pool.map(lambda r: checked.read([r])[0].tobytes(), ranges))
    assert pieces == [FILE[o : o + s] for o, s in ranges]
