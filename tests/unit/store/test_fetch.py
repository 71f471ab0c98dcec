from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from lance_duck.errors import StoreError
from lance_duck.store.request import ByteRange, fetch


class Numbered:
    """A source whose byte at offset i is `base + i`; with a barrier, a read waits for all others."""

    size = 100

    def __init__(self, base: int, *, remote: bool, barrier: threading.Barrier | None = None) -> None:
        self.path, self.base, self.remote, self.barrier, self.calls = str(base), base, remote, barrier, 0

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        self.calls += 1
        if self.barrier is not None:
            self.barrier.wait(10)
        return [np.arange(self.base + a, self.base + a + n, dtype=np.uint8) for a, n in ranges]


def test_ranges_of_several_sources_are_read_in_order_with_one_call_each() -> None:
    first, second = Numbered(0, remote=False), Numbered(100, remote=False)

    found = fetch([ByteRange(first, 5, 2), ByteRange(second, 1, 1), ByteRange(first, 9, 1)])

    assert [part.tolist() for part in found] == [[5, 6], [101], [9]]
    assert (first.calls, second.calls) == (1, 1)


def test_remote_sources_are_read_concurrently() -> None:
    barrier = threading.Barrier(3)
    sources = [Numbered(50 * i, remote=True, barrier=barrier) for i in range(3)]

    found = fetch([ByteRange(source, 1, 1) for source in sources])

    assert [part.tolist() for part in found] == [[1], [51], [101]]


def test_an_error_of_a_remote_source_is_raised_unchanged() -> None:
    class Broken(Numbered):
        def read(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
            raise StoreError("gone", where=self.path)

    with pytest.raises(StoreError, match="gone"):
        fetch([ByteRange(Numbered(0, remote=True), 0, 1), ByteRange(Broken(7, remote=True), 0, 1)])
