"""Runs work in threads, and yields the results in order. The number of pending results is limited."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TypeVar

from lance_duck import forks, interrupts

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

    The calling thread processes the first item. Unless `at_once` is true, threads start only when the second result is
    requested. A caller that needs one result therefore waits for only one item. At most `ahead` results are pending.

    An error that `work` raises for an item is raised unchanged when its result is due. When the generator ends or is
    closed early, no further item is started, and each thread stops after its current item.

    Args:
        work: Function that is safe to call from several threads.
        items: The items. The thread that requests the results iterates over them.
        workers: Thread count. None means one per core. 1 runs without threads.
        ahead: Maximum number of pending results. None means three times the number of workers. It is at least 2 with
            threads.
        at_once: Whether to start `ahead` items when the first result is requested. This is useful for work that waits
            for requests.

    Raises:
        ForkedError: Results are requested in a forked child of the process that started the threads.
    """
    count = workers or _cores()
    source = iter(items)
    if count == 1:
        yield from map(work, _checked(source))
        return
    if not at_once:
        yield from map(work, _checked(islice(source, 1)))
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
            interrupts.check()
            waiting.extend(pool.submit(work, item) for item in islice(source, limit - len(waiting)))
            yield waiting.popleft().result()
    finally:
        if forks.count() == born:  # in a forked child, the pool's locks may never be released
            _end(pool, waiting)


def _checked(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        interrupts.check()
        yield item


@cache
def _cores() -> int:
    return os.cpu_count() or 1


def _end(pool: ThreadPoolExecutor, waiting: deque[Future[Result]]) -> None:
    """Cancel pending work. Threads finish their current item."""
    for future in waiting:
        future.cancel()
    pool.shutdown(wait=False, cancel_futures=True)
