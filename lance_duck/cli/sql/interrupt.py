"""Ctrl-C while DuckDB computes.

Python runs signal handlers between its own instructions, which may be minutes apart while DuckDB computes the rows of a
query. The number of the signal is written to a socket at once, though, and a thread waiting there interrupts DuckDB.
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
    """Let Ctrl-C stop the statement that a connection runs, by KeyboardInterrupt or by an error of DuckDB before that.

    Has no effect outside the main thread, since signals do not reach other threads.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(receiver, connection.native, interruption), daemon=True)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield interruption
    finally:
        signal.set_wakeup_fd(before)
        sender.close()
        watcher.join()
        receiver.close()


def _watch(receiver: socket.socket, native: Any, interruption: Interruption) -> None:
    while number := receiver.recv(1):
        if number[0] == signal.SIGINT:
            interruption.happened = True
            native.interrupt()
