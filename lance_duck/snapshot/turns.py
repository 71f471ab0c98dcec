"""Turns: writers on one machine create versions of a table one after the other.

A writer that loses the race for a version has wasted a manifest and a flush, and must start over. A turn is a system
lock (`flock`) on the manifest directory, which is released when its process ends. The lock is only an optimization.
Names are put if absent, and a writer that has waited too long continues without it. Writers on other machines and other
libraries do not use it.
This module is separate from the commit loop because it is tested alone.
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
except ImportError:  # Windows: writers race
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def own_turn(store: Store) -> Iterator[None]:
    """Hold the turn of this machine's writers. Waits at most `LONGEST_TURN` seconds, then continues without it.

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
            fcntl.flock(handle, fcntl.LOCK_UN)  # explicitly, since a forked process also has the handle
        os.close(handle)


def _opened(directory: str) -> int | None:
    try:
        return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None


def _wait(handle: int) -> None:
    """Take the lock if the disk supports locks and the holder releases it in time. Otherwise continue without it."""
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
