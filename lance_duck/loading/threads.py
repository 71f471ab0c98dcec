"""Applies a function to items in threads, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def mapped(function: Callable[[_T], _R], items: Iterable[_T], threads: int) -> Iterator[_R]:
    """Yield the results of a function for each item, in the order of the items.

    Args:
        function: The function. Its error is raised at the position of the item.
        items: The items. At most 2 · threads of them are ahead.
        threads: Number of threads. 0 calls the function in this thread.
    """
    if not threads:
        yield from map(function, items)
        return
    waiting: deque[Future[_R]] = deque()
    with ThreadPoolExecutor(threads, "lance_duck_transform") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
