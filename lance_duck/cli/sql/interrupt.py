"""Ctrl-C while DuckDB computes.

Python runs its handlers of signals between its own instructions, which may be minutes away while DuckDB gives the rows
of a query. The signal's number is written to a socket at once, though, and a thread that waits there interrupts DuckDB.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import lance_duck as ld


@dataclass
class Interruption:
    """Whether Ctrl-C was pressed."""

    happened: bool = False


@contextmanager
def interruptible(connection: ld.Connection) -> Iterator[Interruption]:
    """Have Ctrl-C end the statement that a connection runs: by KeyboardInterrupt, or an error of DuckDB before that.

    In other threads than the main one, which signals do not reach, nothing changes.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    waiting, written = socket.socketpair()
    written.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(waiting, connection.native, interruption), daemon=True)
    before = signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield interruption
    finally:
        signal.set_wakeup_fd(before)
        written.close()
        watcher.join()
        waiting.close()


def _watch(waiting: socket.socket, native: Any, interruption: Interruption) -> None:
    while number := waiting.recv(1):
        if number[0] == signal.SIGINT:
            interruption.happened = True
            native.interrupt()
