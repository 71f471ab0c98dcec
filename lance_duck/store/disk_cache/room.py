"""Keeps a cache folder within its limit: counts what is written, and evicts the blocks that were not used for longest.

A process walks the folder before its first write, and again when it has written a twentieth of the limit. If the folder
is more than 95 % full, it then deletes blocks until the folder is 85 % full. One process alone never exceeds the limit.
Each further process that writes at the same time may exceed it by a twentieth.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Final

from lance_duck.forks import Lock
from lance_duck.store.disk_cache.folder import BlockFile, CacheFolder, is_block, remove
from lance_duck.telemetry.metrics import CACHE_EVICTED_BYTES

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_FULL: Final = 0.95
_AFTERWARDS: Final = 0.85
_STEP: Final = 0.05
_FREE: Final = 0.05
"""Share of the file system that remains free. Below it, nothing is written."""
_ABANDONED: Final = 3600.0
"""Age in seconds from which a temporary file belongs to a killed process."""
_LOCK: Final = "evict.lock"


class Room:
    """The space for new blocks in a folder. Safe to use from several threads.

    Args:
        folder: The folder.
        limit: Maximum size of all blocks in bytes.
    """

    def __init__(self, folder: CacheFolder, limit: int) -> None:
        self.limit = limit
        self._folder = folder
        self._lock = Lock()
        self._left = 0
        self._reserved = 0

    @contextmanager
    def reserve(self, size: int) -> Iterator[bool]:
        """Reserve room for a file of this size, which the block writes. Yields whether there is any. Raises OSError."""
        has_room = self._take(size)
        try:
            yield has_room
        finally:
            if has_room:
                with self._lock:
                    self._reserved -= size

    def _take(self, size: int) -> bool:
        if size > self.limit * _AFTERWARDS:
            return False
        disk = shutil.disk_usage(self._folder.root)
        if disk.free - size < disk.total * _FREE:
            return False
        with self._lock:
            if self._left < size:
                self._left = self._walk(size)
            if self._left < size:
                return False
            self._left -= size
            self._reserved += size
            return True

    def _walk(self, size: int) -> int:
        """Count the files, evict some if there are too many, and return the bytes that can be written."""
        files = list(self._folder.files())
        used = self._reserved + sum(file.size for file in files)
        if used + size > self.limit * _FULL:
            with _alone(os.path.join(self._folder.root, _LOCK)) as is_alone:
                if not is_alone:
                    return 0
                used -= _evict(files, used + size - int(self.limit * _AFTERWARDS))
        return max(0, min(max(size, int(self.limit * _STEP)), self.limit - used))


def _evict(files: Iterable[BlockFile], size: int) -> int:
    """Delete the oldest files that have at least this size together, and return their size."""
    evicted: list[BlockFile] = []
    for file in sorted(files, key=attrgetter("used")):
        if size <= 0:
            break
        if is_block(file.path) or time.time() - file.used > _ABANDONED:
            evicted.append(file)
            size -= file.size
    for file in evicted:
        remove(file.path)
    total = sum(file.size for file in evicted)
    CACHE_EVICTED_BYTES.add("disk", by=total)
    return total


@contextmanager
def _alone(path: str) -> Iterator[bool]:
    """Lock a file for the duration of the block. Yields False if another process has locked it.

    The lock belongs to the process, not to a descriptor. A child that is forked meanwhile does not hold it.
    """
    with open(path, "ab") as file:
        if fcntl is None:
            yield True
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            yield False
            return
        yield True
