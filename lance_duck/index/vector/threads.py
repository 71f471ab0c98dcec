"""The threads of faiss: many small single-threaded tasks in parallel, and a single thread in forked children.

A fork copies OpenMP's records of its threads, but not the threads themselves. A child that requests two threads waits
for a thread that does not exist, or dies. A new thread of the child gets new OpenMP threads. This thread hangs if a
thread of the parent was multiplying matrices during the fork: OpenBLAS has only one set of threads, and in the child,
that set stays reserved forever. Calls that request a single thread do not use the threads of either library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from lance_duck import forks, interrupts
from lance_duck.arrow.memory import check_room
from lance_duck.index.vector.library import faiss

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete
_ALONE: Final = threading.local()
_MEMORY: Final = 192 << 20
"""Memory that the threads and blocks of one call of faiss may need, in bytes. Without it, they end the process."""


def side_by_side(do: Callable[[_T], _R], tasks: Iterable[_T]) -> list[_R]:
    """Run tasks in as many threads as faiss may use, and return the results in order."""
    with ThreadPoolExecutor(_FAISS.omp_get_max_threads(), initializer=_alone) as pool:
        results = []
        for result in pool.map(do, tasks):
            interrupts.check()
            results.append(result)
        return results


def in_slices(do: Callable[[slice], None], count: int, step: int) -> None:
    """Call a function with slices of a range, in as many threads as faiss may use.

    Args:
        do: Function of a slice. With a single thread, it is called once with the whole range.
        count: Length of the range.
        step: Length of a slice.
    """
    if count <= step or _FAISS.omp_get_max_threads() == 1:
        do(slice(0, count))
        return
    side_by_side(do, (slice(first, min(first + step, count)) for first in range(0, count, step)))


def safe_after_fork(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function that calls faiss. In a forked child, each call uses a single thread.

    The function raises MemoryError if a limit of the process leaves too little memory for faiss.
    """

    @wraps(function)
    def guarded(*args: _P.args, **options: _P.kwargs) -> _R:
        if forks.count() and getattr(_ALONE, "since", 0) != forks.count():
            _alone()
        interrupts.check()
        check_room(_MEMORY)
        return function(*args, **options)

    return guarded


@contextmanager
def one_thread(needed: bool = True) -> Iterator[None]:
    """Limit faiss to one thread in calls from this thread, if the work is too small for a second thread.

    Args:
        needed: Whether to limit faiss.
    """
    threads = _FAISS.omp_get_max_threads() if needed else 1
    if threads == 1:
        yield
        return
    _FAISS.omp_set_num_threads(1)
    try:
        yield
    finally:
        _FAISS.omp_set_num_threads(threads)


def _alone() -> None:
    """Limit faiss to one thread in all later calls from this thread. OpenMP stores this limit per calling thread."""
    _FAISS.omp_set_num_threads(1)
    _ALONE.since = forks.count()


forks.after_fork(_alone)
