"""A pool of encoder threads: work on one column runs in order, different columns run in parallel."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from lance_duck import forks
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.file.write.contract import Deferred, Pages
from lance_duck.forks import Lock

Work = Callable[[], Pages]
Encoded = list[tuple[int, "Future[Sequence[EncodedPage]]"]]


@dataclass(slots=True, eq=False)
class Lane:
    """A queue of work items that run in order, one at a time."""

    waiting: deque[tuple[Work, Future[Encoded]]] = field(default_factory=deque)
    is_running: bool = False
    failed: BaseException | None = None


class Lanes:
    """A thread pool. Each thread takes the next work item of an idle lane, or encodes a deferred page.

    Args:
        threads: Number of threads.
    """

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "lance_duck-encode")
        self._lock = Lock()
        self._is_closed = False
        self._born = forks.count()

    def submit(self, lane: Lane, work: Work) -> Future[Encoded]:
        """Append a work item to a lane. Returns a future of its pages, and each page is again a future.

        If a work item fails, all later items of the same lane fail with the same error.

        Raises:
            ForkedError: The pool was created before this process was forked.
        """
        forks.check_not_forked(
            self._born, "a write that the parent process began cannot go on in a forked child", remedy="rewrite"
        )
        future: Future[Encoded] = Future()
        with self._lock:
            lane.waiting.append((work, future))
            starts, lane.is_running = not lane.is_running, True
        if starts:
            self._pool.submit(self._run, lane)
        return future

    def close(self) -> None:
        """Drop all queued work items, and wait for the running items."""
        self._is_closed = True
        if forks.count() == self._born:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, lane: Lane) -> None:
        while True:
            with self._lock:
                if not lane.waiting or self._is_closed:
                    lane.is_running = False
                    return
                work, future = lane.waiting.popleft()
            try:
                if lane.failed is not None:
                    raise lane.failed
                future.set_result([(index, self._encode(page)) for index, page in work()])
            except BaseException as error:
                lane.failed = error
                future.set_exception(error)

    def _encode(self, page: EncodedPage | Deferred) -> Future[Sequence[EncodedPage]]:
        if not isinstance(page, EncodedPage):
            return self._pool.submit(page)
        done: Future[Sequence[EncodedPage]] = Future()
        done.set_result((page,))
        return done


def all_done(encoded: Sequence[Future[Encoded]]) -> bool:
    """Return whether all pages are encoded."""
    return all(
        future.done() and (future.exception() is not None or all(page.done() for _, page in future.result()))
        for future in encoded
    )
