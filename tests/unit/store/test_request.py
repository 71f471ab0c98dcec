"""What is read can be counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lance_duck.store.request import ByteRange, Bytes, fetch, watched


class Source:
    path = "somewhere"
    size = 100
    remote = False

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        return [np.zeros(size, np.uint8) for _, size in ranges]


def test_reads_are_counted_while_somebody_watches() -> None:
    source = Source()
    with watched() as outer:
        fetch([ByteRange(source, 0, 10), ByteRange(source, 50, 5)])
        with watched() as inner:
            fetch([ByteRange(source, 0, 3)])
    fetch([ByteRange(source, 0, 7)])
    assert (outer.ranges, outer.size) == (3, 18)
    assert (inner.ranges, inner.size) == (1, 3)
