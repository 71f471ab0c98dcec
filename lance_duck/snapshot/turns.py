"""Turns: writers on the same machine create versions of a table one at a time.

A writer that loses the race for a version has wasted a manifest and a flush, and must start over. A turn is a lock
(`flock`) on the manifest directory. The system releases it when the process ends. The lock is only an optimization:
manifests are put if absent, and a writer that waits too long continues without the lock. Writers on other machines and
other libraries do not use it.
This module is separate from the commit loop to be testable on its own.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from lance_duck.snapshot.costs import LONGEST_POLL, LONGEST_TURN, SHORTEST_POLL
from lance_duck.store import Store, local_path
from lance_duck.wire import paths

try:
    import fcntl
except ImportError:  # Windows, where writers do not take turns
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def own_turn(store: Store) -> Iterator[None]:
    """Hold this machine's turn during the block. Waits at most `LONGEST_TURN` seconds, then continues without it.

    Args:
        store: Root of the table. Object stores do not use turns.
    """
    root = local_path(store.uri)
    handle = None if root is None or fcntl is None else _opened(os.path.join(root, paths.VERSIONS))
    if handle is None:
        yield
        return
    try:
        _wait(handle)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # explicitly, because a forked process may also hold the handle
        os.close(handle)


def _opened(directory: str) -> int | None:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _wait(handle: int) -> None:
    """Take the lock. Continues without it if the disk does not support locks, or if the wait takes too long."""
    end, poll = time.monotonic() + LONGEST_TURN, SHORTEST_POLL
    with contextlib.suppress(OSError):
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= end:
                    return
            else:
                return
            time.sleep(poll)
            poll = min(2 * poll, LONGEST_POLL)
