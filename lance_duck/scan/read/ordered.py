"""Work in threads, with results in order, a bounded distance ahead of their consumer."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TypeVar

from lance_duck import forks

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int | None = None,
    ahead: int | None = None,
    at_once: bool = False,
) -> Generator[Result, None, None]:
    """Yield work(item) for each item, in order.

    The calling thread processes the first item. Unless `at_once`, others start only when a second result is taken, so a
    consumer of one result pays for one. Items are consumed one by one, and at most `ahead` results are pending.

    An error of `work` is raised in order, unchanged. When the generator ends or is closed early, no further item is
    started, and each thread stops after its current item.

    Args:
        work: Safe to call from several threads.
        items: Drawn in the thread that takes the results.
        workers: Thread count. None means one per core. 1 runs without threads.
        ahead: Maximum number of pending results. None means three times the workers. At least 2 with
            threads.
        at_once: Start `ahead` items when the first result is requested. Useful for work that waits rather than
            computes.

    Raises:
        ForkedError: Results are requested in a forked child of the process whose threads do the work.
    """
    count = workers or _cores()
    source = iter(items)
    if count == 1:
        yield from map(work, source)
        return
    if not at_once:
        yield from map(work, islice(source, 1))
    begun = list(islice(source, 1))
    if not begun:
        return  # a single item does not need threads
    pool = ThreadPoolExecutor(count, thread_name_prefix="lance_duck-scan")
    waiting: deque[Future[Result]] = deque()
    born = forks.count()
    limit = max(ahead or 3 * count, 2)
    try:
        waiting.append(pool.submit(work, *begun))
        while waiting:
            forks.check_not_forked(
                born, "a scan that the parent process began cannot go on in a forked child", remedy="scan again"
            )
            waiting.extend(pool.submit(work, item) for item in islice(source, limit - len(waiting)))
            yield waiting.popleft().result()
    finally:
        if forks.count() == born:  # in a child the locks of the pool may be held for ever
            _end(pool, waiting)


@cache
def _cores() -> int:
    return os.cpu_count() or 1


def _end(pool: ThreadPoolExecutor, waiting: deque[Future[Result]]) -> None:
    """Cancel pending work; threads finish their current item."""
    for future in waiting:
        future.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
