from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.layouts.blob import read_extents
from lance_duck.errors import CorruptError
from lance_duck.store import run


class Noted:
    """A source that records requests."""

    remote = False

    path = "noted"

    def __init__(self, data: bytes) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.size = len(data)
        self.asked: list[tuple[int, int]] = []

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        self.asked += ranges
        return [self.data[offset : offset + size] for offset, size in ranges]


def read(source: Noted, *extents: tuple[int, int]) -> list[bytes]:
    positions, sizes = np.array(extents, np.uint64).reshape(-1, 2).T
    block = run(read_extents(positions, sizes, source, "column"))
    cuts = block.offsets.tolist()
    return [block.data[a:b].tobytes() for a, b in pairwise(cuts)]


def test_adjacent_blobs_are_read_together() -> None:
    source = Noted(bytes(range(256)) * 100)
    assert read(source, (64, 3), (0, 2), (9999, 0), (130, 1)) == [bytes([64, 65, 66]), b"\0\1", b"", bytes([130])]
    assert source.asked == [(0, 131)]
    source.asked.clear()
    assert read(source, (5, 1), (20_000, 1)) == [b"\5", bytes([20_000 % 256])]
    assert source.asked == [(5, 1), (20_000, 1)]
    source.asked.clear()
    large = read(source, (0, 5000), (5000, 5000))
    assert [len(part) for part in large] == [5000, 5000]
    assert source.asked == [(0, 5000), (5000, 5000)]
    source.asked.clear()
    assert read(source) == []
    assert read(source, (2**64 - 1, 0)) == [b""]
    assert source.asked == []


@pytest.mark.parametrize(
    ("extents", "message"),
    [
        ([(8, 3)], "beyond the end"),
        ([(2**64 - 1, 1)], "beyond the end"),
        ([(0, 2**64 - 1)], "beyond the end"),
        ([(0, 6), (2, 6)], "overlap"),
        ([(0, 10)] * 1000, "overlap"),
    ],
)
def test_impossible_extents_are_corrupt(extents: list[tuple[int, int]], message: str) -> None:
    with pytest.raises(CorruptError, match=message):
        read(Noted(bytes(10)), *extents)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80)), max_size=12), st.randoms(use_true_random=False))
def test_blob_bytes_equal_those_of_the_file(steps: list[tuple[int, int]], random: object) -> None:
    extents, at = [], 0
    for gap, size in steps:
        extents.append((at + gap, size))
        at += gap + size
    random.shuffle(extents)  # type: ignore[attr-defined]
    data = np.random.default_rng(len(steps)).bytes(at + 1)
    assert read(Noted(data), *extents) == [data[position : position + size] for position, size in extents]
