from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from lance_duck.store.disk_cache import usage, wait_for_blocks, waiting
from lance_duck.store.disk_cache.blocks import PAGE, ObjectVersion
from lance_duck.store.disk_cache.waiting import WaitingBlocks
from lance_duck.store.request import Bytes

OBJECT: Final = ObjectVersion(bytes(32), 100 * PAGE, 5)


def pages(*numbers: int) -> dict[int, Bytes]:
    return {number: np.full(PAGE, number, np.uint8) for number in numbers}


class Disk:
    """A disk that writes when the test says so.

    Attributes:
        written: Block and pages of each write.
        is_busy: Is set when a write begins.
        may_write: Lets writes end.
    """

    def __init__(self) -> None:
        self.written: list[tuple[int, list[int]]] = []
        self.is_busy = threading.Event()
        self.may_write = threading.Event()

    def write(self, version: ObjectVersion, number: int, written: Mapping[int, Bytes]) -> None:
        self.is_busy.set()
        assert self.may_write.wait(60)
        self.written.append((number, sorted(written)))


@pytest.fixture
def disk() -> Iterator[Disk]:
    disk = Disk()
    yield disk
    disk.may_write.set()
    wait_for_blocks()


def test_waiting_pages_are_found_and_written_together(disk: Disk) -> None:
    blocks = WaitingBlocks(disk.write)
    blocks.add(OBJECT, 7, pages(9))
    assert disk.is_busy.wait(60)
    for page in (1, 2, 2):
        blocks.add(OBJECT, 0, pages(page))
    assert sorted(blocks.find(OBJECT, 0)) == [1, 2]
    assert sorted(blocks.find(OBJECT, 7)) == [9]
    assert blocks.find(OBJECT, 1) == {}
    disk.may_write.set()
    wait_for_blocks()
    assert disk.written == [(7, [9]), (0, [1, 2])]
    assert blocks.find(OBJECT, 0) == {}


def test_pages_that_come_while_their_block_is_written_are_written_afterwards(disk: Disk) -> None:
    blocks = WaitingBlocks(disk.write)
    blocks.add(OBJECT, 0, pages(1))
    assert disk.is_busy.wait(60)
    blocks.add(OBJECT, 0, pages(1, 2))
    disk.may_write.set()
    wait_for_blocks()
    assert disk.written == [(0, [1]), (0, [2])]


def test_pages_are_not_stored_if_too_many_wait(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "MOST_BYTES", 2 * PAGE)
    blocks = WaitingBlocks(disk.write)
    for number in range(3):
        blocks.add(OBJECT, number, pages(number))
    assert [len(blocks.find(OBJECT, number)) for number in range(3)] == [1, 1, 0]
    disk.may_write.set()
    wait_for_blocks()
    blocks.add(OBJECT, 2, pages(2))
    wait_for_blocks()
    assert disk.written == [(0, [0]), (1, [1]), (2, [2])]


def test_a_failed_write_does_not_stop_the_others() -> None:
    written: list[int] = []

    def write(version: ObjectVersion, number: int, pages: Mapping[int, Bytes]) -> None:
        if number == 0:
            raise MemoryError
        written.append(number)

    blocks = WaitingBlocks(write)
    for number in range(3):
        blocks.add(OBJECT, number, pages(number))
    wait_for_blocks()
    assert written == [1, 2]
    assert blocks.find(OBJECT, 0) == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_forgets_the_blocks_of_its_parent_and_writes_its_own(disk: Disk) -> None:
    blocks = WaitingBlocks(disk.write)
    blocks.add(OBJECT, 0, pages(0))
    assert disk.is_busy.wait(60)
    child = os.fork()
    if child == 0:
        try:
            disk.may_write.set()
            blocks.add(OBJECT, 1, pages(1))
            wait_for_blocks()
            os._exit(0 if disk.written == [(1, [1])] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


ENDING: Final = """
import sys
from lance_duck.store.disk_cache import DiskCache
from tests.unit.store.disk_cache.test_waiting import OBJECT, pages
cache = DiskCache(sys.argv[1], 1 << 30)
for page in range(90):
    cache.store(OBJECT, page * 16384, pages(page)[page])
"""


def test_a_process_writes_its_waiting_blocks_before_it_ends(tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", ENDING, folder], check=True, timeout=120, cwd=root)
    assert usage(folder).blocks == 2
    assert usage(folder).size > 90 * PAGE
