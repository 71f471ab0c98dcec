"""Flushes of file contents and directories. They make files survive a power failure.

A new name changes its directory, and a new directory changes its parent. Changed directories and small files are
recorded for the whole process. All of them are flushed together before a commit names the files. The disk then
writes its journal once for these files and directories, and once more for the name of the manifest.

On Windows, only files are flushed, through a writable handle. The NTFS journal covers directories. On macOS, `fsync`
passes the bytes to the drive, which may keep them in its cache. F_FULLFSYNC makes the drive write them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from _thread import LockType, allocate_lock, start_new_thread
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from typing import Final

from lance_duck.forks import Lock
from lance_duck.store.costs import FLUSHES_BY_ONE, REQUESTS_AT_ONCE, SAFE_DIRECTORIES

try:
    import fcntl
except ImportError:  # does not exist on Windows
    fcntl = None  # type: ignore[assignment]

_CAN_FLUSH_DIRECTORIES = os.name == "posix"
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS only
_LEAST_SWEPT: Final = 64
"""Number of recorded paths from which deleted ones are looked for."""


class _Paths:
    """Recorded paths. The paths below a root are adjacent. Paths that were deleted are forgotten from time to time."""

    def __init__(self) -> None:
        self._tickets: dict[str, int] = {}
        self._ordered: list[str] = []  # with a separator at the end
        self._most = _LEAST_SWEPT

    def add(self, path: str, ticket: int) -> None:
        """Record a path, or replace its ticket."""
        if path not in self._tickets:
            if len(self._tickets) >= self._most:
                self._sweep()
            insort(self._ordered, _ended(path))
        self._tickets[path] = ticket

    def remove(self, path: str, ticket: int) -> None:
        """Forget a path, unless it has another ticket."""
        if self._tickets.get(path) == ticket:
            del self._tickets[path]
            del self._ordered[bisect_left(self._ordered, _ended(path))]

    def below(self, root: str) -> Iterator[tuple[str, int]]:
        """Yield the root and the paths below it that are recorded, with their tickets."""
        root = _ended(root)
        for at in range(bisect_left(self._ordered, root), len(self._ordered)):
            if not self._ordered[at].startswith(root):
                return
            path = self._ordered[at].rstrip(os.sep) or os.sep
            yield path, self._tickets[path]

    def above(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the directories above a path that are recorded, with their tickets."""
        while (parent := os.path.dirname(path)) != path:
            path = parent
            if path in self._tickets:
                yield path, self._tickets[path]

    def _sweep(self) -> None:
        self._tickets = {path: ticket for path, ticket in self._tickets.items() if os.path.exists(path)}
        self._ordered = sorted(map(_ended, self._tickets))
        self._most = max(_LEAST_SWEPT, 2 * len(self._ordered))


class UnflushedPaths:
    """Small files and changed directories that may not be on disk yet."""

    def __init__(self) -> None:
        self._directories = _Paths()
        self._files = _Paths()
        self._ticket = itertools.count()
        # Directories whose name is durable, and their inodes. A directory may be recreated with the same name.
        self._safe_directories: dict[str, int] = {}
        self._lock = Lock()

    def note(self, directory: str) -> None:
        """Record a directory that contains a new name."""
        if _CAN_FLUSH_DIRECTORIES:
            with self._lock:
                self._directories.add(_plain(directory), next(self._ticket))

    def note_file(self, file: str) -> None:
        """Record a new file whose contents are not flushed."""
        with self._lock:
            self._files.add(_plain(file), next(self._ticket))
        self.note(os.path.dirname(file))

    def flush(self, roots: Sequence[str], files: Sequence[str] = ()) -> None:
        """Flush `files`, and all recorded files and directories below the roots. Raises OSError.

        Also flushes recorded directories above the roots, and the parents of directories whose names may not be
        durable.
        """
        with self._lock:
            late = dict(entry for root in roots for entry in self._files.below(root))
            noted = dict(entry for root in roots for entry in self._directories.below(root))
            noted.update(entry for root in roots for entry in self._directories.above(_plain(root)))
        parents = dict(entry for directory in noted for root in roots for entry in self._not_safe(directory, root))
        _flush_all(files, [*late], {*noted, *map(os.path.dirname, parents)})
        with self._lock:  # not before the flush, because a concurrent commit must also flush these names
            if len(self._safe_directories) > SAFE_DIRECTORIES:
                self._safe_directories.clear()
            self._safe_directories.update(parents)
            for file, ticket in late.items():
                self._files.remove(file, ticket)
            for directory, ticket in noted.items():
                self._directories.remove(directory, ticket)

    def _not_safe(self, directory: str, root: str) -> list[tuple[str, int]]:
        """Return the path and inode of a directory and its parents below the root, unless their names are durable."""
        result = []
        while directory != root and _holds(root, directory):
            with contextlib.suppress(FileNotFoundError):
                number = os.stat(directory).st_ino
                if self._safe_directories.get(directory) != number:
                    result.append((directory, number))
            directory = os.path.dirname(directory)
        return result


def fsync(handle: int) -> None:
    """Flush an open file or directory to the disk itself. Raises OSError."""
    if fcntl is not None and _FULL_FSYNC is not None:
        with contextlib.suppress(OSError):  # network disks do not support F_FULLFSYNC
            fcntl.fcntl(handle, _FULL_FSYNC)
            return
    os.fsync(handle)


def _flush_all(files: Sequence[str], late: Sequence[str], directories: set[str]) -> None:
    """Flush files and directories concurrently, to let the disk combine writes.

    Directories and `late` files may no longer exist.
    """
    work = [
        *((file, os.O_RDWR, False) for file in files),
        *((file, os.O_RDWR, True) for file in late),
        *((directory, os.O_RDONLY, True) for directory in directories),
    ]
    failed: list[BaseException] = []

    def run(share: list[tuple[str, int, bool]], done: LockType) -> None:
        try:
            for path, mode, may_be_gone in share:
                _flush(path, mode, may_be_gone=may_be_gone)
        except BaseException as error:
            failed.append(error)
        finally:
            done.release()

    count = min(REQUESTS_AT_ONCE, -(-len(work) // FLUSHES_BY_ONE))
    started: list[LockType] = []
    for at in reversed(range(count)):
        done = allocate_lock()
        done.acquire()
        if at:
            start_new_thread(run, (work[at::count], done))  # `threading.Thread` takes twice as long to start
            started.append(done)
        else:
            run(work[::count], done)
    for done in started:
        done.acquire()
    if failed:
        raise failed[0]


def _flush(path: str, mode: int, *, may_be_gone: bool) -> None:
    try:
        handle = os.open(path, mode)
    except FileNotFoundError:
        if not may_be_gone:
            raise
        return  # an empty directory or an abandoned file was deleted
    try:
        fsync(handle)
    finally:
        os.close(handle)


def _plain(path: str) -> str:
    return path.rstrip(os.sep) or os.sep


def _ended(path: str) -> str:
    return path.rstrip(os.sep) + os.sep


def _holds(outer: str, inner: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


unflushed = UnflushedPaths()
