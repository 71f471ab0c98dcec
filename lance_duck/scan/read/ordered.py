"""Work in threads, results in order, a bounded distance ahead of who takes them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from lance_duck import forks

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(
    work: Callable[[Item], Result], items: Iterable[Item], *, workers: int | None = None, ahead: int | None = None
) -> Generator[Result, None, None]:
    """Yield work(item) for each item, in order.

    The first item is worked on in the calling thread, and nothing else is begun before a second result is asked for:
    who wants little pays for little. Items are drawn one by one, at most `ahead` results wait or are being worked on.

    An error of `work` comes out in its turn, as itself. When the generator ends, or is closed early,
    no further item is begun, and each thread ends with the item that it works on.

    Args:
        work: Safe to call from several threads.
        items: Drawn in the thread that takes the results.
        workers: Threads; one for each core unless given. 1: no threads at all.
        ahead: Three times the workers unless given.

    Raises:
        ForkedError: Results are taken by a forked child of the process whose threads were at work.
    """
    count = workers or _cores()
    source = iter(items)
    for item in source:
        yield work(item)
        break
    second = next(source, _END)
    if second is _END:
        return
    if count == 1:
        yield work(second)  # type: ignore[arg-type]
        yield from map(work, source)
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="lance_duck-scan")
    waiting: deque[Future[Result]] = deque()
    born = forks.count()
    try:
        waiting.append(pool.submit(work, second))  # type: ignore[arg-type]
        limit = ahead or 3 * count
        exhausted = False
        while waiting:
            forks.check_not_forked(
                born, "a scan that the parent process began cannot go on in a forked child", remedy="scan again"
            )
            while not exhausted and len(waiting) < limit:
                item_or_end = next(source, _END)
                exhausted = item_or_end is _END
                if not exhausted:
                    waiting.append(pool.submit(work, item_or_end))  # type: ignore[arg-type]
            yield waiting.popleft().result()
    finally:
        if forks.count() == born:  # in a child the locks of the pool may be held for ever
            _end(pool, waiting)


@cache
def _cores() -> int:
    return os.cpu_count() or 1


_END = object()


def _end(pool: ThreadPoolExecutor, waiting: deque[Future[Result]]) -> None:
    """Cancel what has not begun; a thread ends with the item that it works on."""
    for future in waiting:
        future.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
