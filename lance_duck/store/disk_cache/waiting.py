"""Blocks that wait to be written by a thread in the background, so that no read waits for the disk.

Readers find the waiting pages here. If too many bytes wait, further pages are not stored. A process writes the waiting
blocks before it ends. A forked child forgets them, because its parent writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from lance_duck import forks
from lance_duck.store.costs import AHEAD_BYTES
from lance_duck.store.disk_cache.blocks import ObjectVersion
from lance_duck.store.request import Bytes

MOST_BYTES: Final = AHEAD_BYTES
"""Maximum size of all waiting pages of a folder in bytes. Limits memory use."""

_Block = tuple[ObjectVersion, int]


class WaitingBlocks:
    """Pages that are not yet on the disk. Safe to use from several threads.

    Args:
        write: Writes pages of a block, given by number. Handles the errors of the disk.
    """

    def __init__(self, write: Callable[[ObjectVersion, int, Mapping[int, Bytes]], None]) -> None:
        self._write = write
        self._lock = forks.Lock()
        self._blocks: dict[_Block, dict[int, Bytes]] = {}
        self._size = 0
        self._born = forks.count()

    def add(self, version: ObjectVersion, number: int, pages: Mapping[int, Bytes]) -> None:
        """Write pages of a block soon, unless too many bytes wait."""
        block = version, number
        with self._lock:
            if self._born != forks.count():
                self._blocks, self._size, self._born = {}, 0, forks.count()
            waiting = self._blocks.get(block, {})
            new = {page: data for page, data in pages.items() if page not in waiting}
            size = sum(map(len, new.values()))
            if not new or self._size + size > MOST_BYTES:
                return
            if not waiting and not self._start(block):
                return
            self._blocks[block] = waiting | new
            self._size += size

    def find(self, version: ObjectVersion, number: int) -> Mapping[int, Bytes]:
        """Return the waiting pages of a block."""
        return self._blocks.get((version, number), {})

    def _start(self, block: _Block) -> bool:
        """Let the thread write a block. Returns False if the interpreter is shutting down."""
        try:
            _thread.submit(self._write_block, block)
        except RuntimeError:
            return False
        return True

    def _write_block(self, block: _Block) -> None:
        """Write a block, with the pages that come meanwhile: when the process ends, nothing can be submitted."""
        pages: Mapping[int, Bytes] = {}
        while True:
            with self._lock:
                left = {page: data for page, data in self._blocks[block].items() if page not in pages}
                self._size -= sum(map(len, pages.values()))
                if not left:
                    del self._blocks[block]
                    return
                self._blocks[block] = pages = left
            try:
                self._write(*block, pages)
            except BaseException:
                with self._lock:
                    self._size -= sum(map(len, self._blocks.pop(block).values()))
                raise


def wait_for_blocks() -> None:
    """Wait until this process has written all pages that wait now."""
    _thread.submit(lambda: None).result()


def _new_thread() -> None:
    global _thread
    _thread = ThreadPoolExecutor(1, thread_name_prefix="lance_duck-cache")


_thread: ThreadPoolExecutor
_new_thread()
forks.after_fork(_new_thread)
