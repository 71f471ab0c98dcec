"""Threads that encode: the work of one column in order, that of several side by side."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from lance_duck.encoding.write.page import EncodedPage
from lance_duck.file.write.contract import Deferred, Pages

Work = Callable[[], Pages]
Encoded = list[tuple[int, "Future[Sequence[EncodedPage]]"]]


@dataclass(slots=True, eq=False)
class Lane:
    """Work that is done one after the other."""

    waiting: deque[tuple[Work, Future[Encoded]]] = field(default_factory=deque)
    is_running: bool = False
    failed: BaseException | None = None


class Lanes:
    """A few threads; each takes the next work of a lane that nobody is at, or encodes a page that was deferred.

    Args:
        threads: How many.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "lance_duck-encode")
        self._lock = threading.Lock()
        self._is_closed = False

    def submit(self, lane: Lane, work: Work) -> Future[Encoded]:
        """Do work after that which the lane has; gives its pages, which may still be on their way.

        Once work of a lane has failed, what follows in it fails alike.
        """
        found: Future[Encoded] = Future()
        with self._lock:
            lane.waiting.append((work, found))
            starts, lane.is_running = not lane.is_running, True
        if starts:
            self._pool.submit(self._run, lane)
        return found

    def close(self) -> None:
        """Drop all work that has not begun, and wait for that which has."""
        self._is_closed = True
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, lane: Lane) -> None:
        while True:
            with self._lock:
                if not lane.waiting or self._is_closed:
                    lane.is_running = False
                    return
                work, found = lane.waiting.popleft()
            try:
                if lane.failed is not None:
                    raise lane.failed
                found.set_result([(index, self._encode(page)) for index, page in work()])
            except BaseException as error:
                lane.failed = error
                found.set_exception(error)

    def _encode(self, page: EncodedPage | Deferred) -> Future[Sequence[EncodedPage]]:
        if not isinstance(page, EncodedPage):
            return self._pool.submit(page)
        done: Future[Sequence[EncodedPage]] = Future()
        done.set_result((page,))
        return done


def all_done(encoded: Sequence[Future[Encoded]]) -> bool:
    """Whether nothing of it has to be waited for."""
    return all(
        future.done() and (future.exception() is not None or all(page.done() for _, page in future.result()))
        for future in encoded
    )
