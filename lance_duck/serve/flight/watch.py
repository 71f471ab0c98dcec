"""Notices clients that left, and ends what nobody uses any more."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyarrow import flight

_PAUSE: Final = 0.2
"""Time between two looks, in seconds."""


class FlightWatch:
    """A thread that looks at running requests.

    Args:
        expire: Is called at each look.
    """

    def __init__(self, expire: Callable[[], None]) -> None:
        self._expire = expire
        self._lock = threading.Lock()
        self._watched: dict[flight.ServerCallContext, Callable[[], None]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, name="lance-duck-flight-watch", daemon=True)
        self._thread.start()

    @contextmanager
    def watching(self, context: flight.ServerCallContext, left: Callable[[], None]) -> Iterator[None]:
        """Call `left` repeatedly if the client of a request leaves. A context is only read while its request runs."""
        with self._lock:
            self._watched[context] = left
        try:
            yield
        finally:
            with self._lock:
                del self._watched[context]

    def close(self) -> None:
        """End the thread."""
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(_PAUSE):
            with self._lock:
                gone = [left for context, left in self._watched.items() if context.is_cancelled()]
            for left in gone:
                left()
            self._expire()
