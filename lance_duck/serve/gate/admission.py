"""Limits the number of requests that run and that wait."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lance_duck.serve.gate.refusals import AbandonedError, BusyError, StoppingError
from lance_duck.telemetry.metrics import QUEUED_STATEMENTS


class Admission:
    """Slots for running requests.

    Args:
        slots: Maximum number of running requests.
        max_waiting: Maximum number of waiting requests.
        max_wait: Maximum time that a request waits, in seconds.
    """

    def __init__(self, slots: int, max_waiting: int, max_wait: float) -> None:
        self._free = threading.Condition()
        self._slots = slots
        self._max_waiting = max_waiting
        self._max_wait = max_wait
        self._is_closed = False
        self.running = 0
        self.waiting = 0

    @contextmanager
    def slot(self, is_gone: Callable[[], bool] = lambda: False, *, seconds: float = math.inf) -> Iterator[None]:
        """Wait for a slot, and hold it.

        Args:
            is_gone: Returns whether the client has left. `wake` lets waiting requests ask again.
            seconds: Maximum time that this request waits, if it is shorter than that of all requests.

        Raises:
            AbandonedError: The client has left.
            BusyError: Too many requests wait, or no slot became free in time.
            StoppingError: The server stops.
        """
        self._take(is_gone, min(seconds, self._max_wait))
        try:
            yield
        finally:
            with self._free:
                self.running -= 1
                self._free.notify()

    def _take(self, is_gone: Callable[[], bool], seconds: float) -> None:
        with self._free:
            if not self._is_closed and self.running >= self._slots:
                self._wait(is_gone, seconds)
            if self._is_closed:
                raise StoppingError("the server stops", remedy="try again later")
            self.running += 1

    def _wait(self, is_gone: Callable[[], bool], seconds: float) -> None:
        if self.waiting >= self._max_waiting:
            raise BusyError("too many requests wait", found=self.waiting, remedy="try again later")
        end = time.monotonic() + seconds
        self.waiting += 1
        QUEUED_STATEMENTS.add()
        try:
            while self.running >= self._slots and not self._is_closed:
                if is_gone():
                    raise AbandonedError("the client closed the connection")
                if not self._free.wait(end - time.monotonic()):
                    raise BusyError("no request ended in time", found=f"{seconds:g} seconds", remedy="try again later")
        finally:
            self.waiting -= 1
            QUEUED_STATEMENTS.add(by=-1)

    def wake(self) -> None:
        """Let waiting requests check whether their clients have left."""
        with self._free:
            self._free.notify_all()

    def close(self) -> None:
        """Refuse new and waiting requests. Running ones go on."""
        with self._free:
            self._is_closed = True
            self._free.notify_all()

    @property
    def is_closed(self) -> bool:
        """Whether new requests are refused."""
        return self._is_closed

    def drained(self, timeout: float) -> bool:
        """Wait until no request runs. Returns False if some still run after `timeout` seconds."""
        end = time.monotonic() + timeout
        with self._free:
            while self.running:
                if not self._free.wait(max(0.0, end - time.monotonic())) and time.monotonic() >= end:
                    return False
        return True
