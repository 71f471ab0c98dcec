"""What makes files survive a power cut: flushed contents, and flushed directories in which they got their names.

A new name is a change of its directory, and a new directory one of its parent. Directories are noted when that
happens, for the whole process, and flushed together before a commit names the files.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading

_CAN_FLUSH_DIRECTORIES = os.name == "posix"


class Unflushed:
    """Directories in which names appeared that may not be on the disk yet."""

    def __init__(self) -> None:
        self._noted: dict[str, int] = {}
        self._ticket = itertools.count()
        self._lock = threading.Lock()

    def note(self, directory: str) -> None:
        """Remember a directory in which a name has appeared."""
        if _CAN_FLUSH_DIRECTORIES:
            with self._lock:
                self._noted[directory] = next(self._ticket)

    def flush(self, root: str) -> None:
        """Flush the directories that lie below a root or above it. Raises OSError."""
        with self._lock:
            noted = [(d, t) for d, t in self._noted.items() if _holds(root, d) or _holds(d, root)]
        for directory, ticket in noted:
            with contextlib.suppress(FileNotFoundError):
                flush_directory(directory)
            with self._lock:  # only now: another thread that commits meanwhile must find it, too
                if self._noted.get(directory) == ticket:
                    del self._noted[directory]


def flush_directory(directory: str) -> None:
    """Make the names in a directory safe; does nothing where the system has no such call. Raises OSError."""
    if not _CAN_FLUSH_DIRECTORIES:
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _holds(outer: str, inner: str) -> bool:
    return (inner + os.sep).startswith(outer.rstrip(os.sep) + os.sep)


unflushed = Unflushed()
