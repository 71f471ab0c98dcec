"""Ends connections whose clients do not answer."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def hang_up(port: int) -> None:
    """End the connections that this process has accepted at a port. Arrow cannot end a call that waits for its client.

    Windows has no list of open files. There, the function does nothing.
    """
    files = os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else []
    for file in map(int, files):
        with suppress(OSError), socket.fromfd(file, socket.AF_INET, socket.SOCK_STREAM) as connection:
            name = connection.getsockname()
            if isinstance(name, tuple) and name[1] == port:
                connection.shutdown(socket.SHUT_RDWR)
