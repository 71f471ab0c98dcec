"""Reads can be counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_duck.store.request import ByteRange, Bytes, Request, fetch, read_first, run, watched


class Source:
    path = "somewhere"
    size = 100
    remote = False

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        return [np.zeros(size, np.uint8) for _, size in ranges]


def test_reads_are_counted_while_watched() -> None:
    source = Source()
    with watched() as outer:
        fetch([ByteRange(source, 0, 10), ByteRange(source, 50, 5)])
        with watched() as inner:
            fetch([ByteRange(source, 0, 3)])
    fetch([ByteRange(source, 0, 7)])
    assert (outer.ranges, outer.size) == (3, 18)
    assert (inner.ranges, inner.size) == (1, 3)


class Numbered(Source):
    """A source with byte i at offset i that records reads."""

    def __init__(self) -> None:
        self.reads: list[list[tuple[int, int]]] = []

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        self.reads.append(list(ranges))
        return [np.arange(offset, offset + size, dtype=np.uint8) for offset, size in ranges]


def wanted(source: Numbered, *rounds: list[tuple[int, int]]) -> Request[list[list[int]]]:
    pieces = []
    for ranges in rounds:
        pieces += yield [ByteRange(source, offset, size) for offset, size in ranges]
    return [piece.tolist() for piece in pieces]


def test_ranges_covered_by_an_earlier_read_are_not_read_again() -> None:
    source, other = Numbered(), Numbered()
    rounds = [[(10, 2)], [(18, 2), (19, 2), (10, 0)], [(40, 3), (12, 1)]]
    plain = run(wanted(source, *rounds))
    source.reads.clear()
    first = [ByteRange(source, 10, 10), ByteRange(other, 40, 10), ByteRange(source, 60, 5)]
    assert run(read_first(first, wanted(source, *rounds))) == plain
    assert source.reads == [[(10, 10), (60, 5)], [(19, 2)], [(40, 3)]]
    assert other.reads == [[(40, 10)]]
