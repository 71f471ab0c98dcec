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
import threading
from collections.abc import Sequence

from lance_duck.forks import Lock
from lance_duck.store.costs import FLUSHES_BY_ONE, REQUESTS_AT_ONCE, SAFE_DIRECTORIES

try:
    import fcntl
except ImportError:  # does not exist on Windows
    fcntl = None  # type: ignore[assignment]

_CAN_FLUSH_DIRECTORIES = os.name == "posix"
_FULL_FSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # on macOS only


class UnflushedPaths:
    """Small files and changed directories that may not be on disk yet."""

    def __init__(self) -> None:
        self._directories: dict[str, int] = {}
        self._files: set[str] = set()
        self._ticket = itertools.count()
        # Directories whose name is durable, and their inodes. A directory may be recreated with the same name.
        self._safe_directories: dict[str, int] = {}
        self._lock = Lock()

    def note(self, directory: str) -> None:
        """Record a directory that contains a new name."""
        if _CAN_FLUSH_DIRECTORIES:
            with self._lock:
                self._directories[directory] = next(self._ticket)

    def note_file(self, file: str) -> None:
        """Record a new file whose contents are not flushed."""
        with self._lock:
            self._files.add(file)
        self.note(os.path.dirname(file))

    def flush(self, roots: Sequence[str], files: Sequence[str] = ()) -> None:
        """Flush `files`, and all recorded files and directories below the roots. Raises OSError.

        Also flushes recorded directories above the roots, and the parents of directories whose names may not be
        durable.
        """
        with self._lock:
            late = [file for file in self._files if any(_holds(root, file) for root in roots)]
            noted = {d: t for d, t in self._directories.items() if any(_holds(r, d) or _holds(d, r) for r in roots)}
        parents = dict(entry for directory in noted for root in roots for entry in self._not_safe(directory, root))
        _flush_all(files, late, {*noted, *map(os.path.dirname, parents)})
        with self._lock:  # not before the flush, because a concurrent commit must also flush these names
            if len(self._safe_directories) > SAFE_DIRECTORIES:
                self._safe_directories.clear()
            self._safe_directories.update(parents)
            self._files.difference_update(late)
            for directory, ticket in noted.items():
                if self._directories.get(directory) == ticket:
                    del self._directories[directory]

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

    def run(share: list[tuple[str, int, bool]]) -> None:
        try:
            for path, mode, may_be_gone in share:
                _flush(path, mode, may_be_gone=may_be_gone)
        except BaseException as error:
            failed.append(error)

    count = min(REQUESTS_AT_ONCE, -(-len(work) // FLUSHES_BY_ONE))
    shares = [work[at::count] for at in range(count)]
    threads = [threading.Thread(target=run, args=(share,)) for share in shares[1:]]
    for thread in threads:
        thread.start()
    for share in shares[:1]:
        run(share)
    for thread in threads:
        thread.join()
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


def _holds(outer: str, inner: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


unflushed = UnflushedPaths()
