"""Flushes, by which files survive a power cut: of their contents, and of the directories that got their names.

A new name is a change of its directory, and a new directory one of its parent. Changed directories are noted for the
whole process, and so are small files; all are flushed together before a commit names the files. The disk then writes
its journal once for the lot of them, and once more for the name of the manifest.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections.abc import Sequence

from lance_duck.forks import Lock
from lance_duck.store.costs import FLUSHES_AT_ONCE, FLUSHES_BY_ONE, SAFE_DIRECTORIES

_CAN_FLUSH_DIRECTORIES = os.name == "posix"


class Unflushed:
    """Small files, and directories in which names appeared, that may not be on the disk yet."""

    def __init__(self) -> None:
        self._directories: dict[str, int] = {}
        self._files: set[str] = set()
        self._ticket = itertools.count()
        # Directories whose own name is safe, by inode: a directory of the same name may be made anew.
        self._safe_directories: dict[str, int] = {}
        self._lock = Lock()

    def note(self, directory: str) -> None:
        """Remember a directory in which a name has appeared."""
        if _CAN_FLUSH_DIRECTORIES:
            with self._lock:
                self._directories[directory] = next(self._ticket)

    def note_file(self, file: str) -> None:
        """Remember a file that appeared in its directory, and whose contents are not flushed."""
        with self._lock:
            self._files.add(file)
        self.note(os.path.dirname(file))

    def flush(self, roots: Sequence[str], files: Sequence[str] = ()) -> None:
        """Flush all noted names below one of the roots, the directories above them, and `files`. Raises OSError."""
        with self._lock:
            late = [file for file in self._files if any(_holds(root, file) for root in roots)]
            noted = {d: t for d, t in self._directories.items() if any(_holds(r, d) or _holds(d, r) for r in roots)}
        parents = dict(entry for directory in noted for root in roots for entry in self._not_safe(directory, root))
        _flush_all(files, {*late, *noted, *map(os.path.dirname, parents)})
        with self._lock:  # only now: another thread that commits meanwhile must find them, too
            if len(self._safe_directories) > SAFE_DIRECTORIES:
                self._safe_directories.clear()
            self._safe_directories.update(parents)
            self._files.difference_update(late)
            for directory, ticket in noted.items():
                if self._directories.get(directory) == ticket:
                    del self._directories[directory]

    def _not_safe(self, directory: str, root: str) -> list[tuple[str, int]]:
        """Return a directory and its parents below the root that another process may just have made."""
        result = []
        while directory != root and _holds(root, directory):
            with contextlib.suppress(FileNotFoundError):
                number = os.stat(directory).st_ino
                if self._safe_directories.get(directory) != number:
                    result.append((directory, number))
            directory = os.path.dirname(directory)
        return result


def _flush_all(files: Sequence[str], noted: set[str]) -> None:
    """Flush files and noted directories side by side, so that a disk writes them in one go; some may be gone again."""
    work = [*((file, os.O_RDWR) for file in files), *((place, os.O_RDONLY) for place in noted)]
    failed: list[BaseException] = []

    def run(share: list[tuple[str, int]]) -> None:
        try:
            for path, mode in share:
                _flush(path, mode)
        except BaseException as error:
            failed.append(error)

    count = min(FLUSHES_AT_ONCE, -(-len(work) // FLUSHES_BY_ONE))
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


def _flush(path: str, mode: int) -> None:
    try:
        handle = os.open(path, mode)
    except FileNotFoundError:
        if mode == os.O_RDWR:
            raise
        return  # a directory that became empty, or a file that was given up
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _holds(outer: str, inner: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


unflushed = Unflushed()
