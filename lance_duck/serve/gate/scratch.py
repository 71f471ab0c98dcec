"""The folder in which DuckDB keeps what does not fit into memory, one for each process.

lance-duck-serve-…/        below the system's temporary folder
    in-use                 locked while its process runs, so that a later process knows that it has ended
    duckdb_temp_…          DuckDB's files
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows, where folders of killed processes stay
    fcntl = None  # type: ignore[assignment]

_PREFIX: Final = "lance-duck-serve-"
_MARK: Final = "in-use"


class ScratchFolder:
    """A temporary folder of this process. It is removed by `close`, at the exit, or by a later process.

    Attributes:
        path: The folder.
    """

    def __init__(self) -> None:
        _sweep()
        self.path = tempfile.mkdtemp(prefix=_PREFIX)
        self._remove = weakref.finalize(self, _remove, self.path, _marked(self.path))

    def close(self) -> None:
        """Remove the folder."""
        self._remove()


def _marked(folder: str) -> int | None:
    """Lock the mark of a new folder, and return its handle. The mark gets its name when it is locked."""
    if fcntl is None:
        return None
    unlocked = os.path.join(folder, "new")
    handle = os.open(unlocked, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with suppress(OSError):  # a disk without locks
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(unlocked, os.path.join(folder, _MARK))
    return handle


def _remove(folder: str, handle: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


def _sweep() -> None:
    """Remove the folders of this user's processes that were killed."""
    for mark in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*/{_MARK}"):
        folder = mark.parent
        with suppress(OSError):  # another process uses or removes it
            if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                continue
            handle = os.open(mark, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)
