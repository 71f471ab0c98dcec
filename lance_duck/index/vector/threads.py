"""Threads of faiss: many small tasks side by side, each by one thread; and forked children, which have one each.

OpenMP's threads do not come along with a fork, but what it knows of them does: a child that asks for two threads waits
for one that is gone, or dies. A thread that is new in the child gets threads of its own, yet hangs where another
thread of the parent was multiplying matrices at the fork: OpenBLAS hands out one set of threads at a time, and that
one never comes back. Both are asked only by those who want more than one thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar

from lance_duck import forks
from lance_duck.index.vector.library import faiss

_T = TypeVar("_T")
_R = TypeVar("_R")
_P = ParamSpec("_P")

_FAISS: Final[Any] = faiss  # its stubs do not have all of it
_ALONE: Final = threading.local()


def side_by_side(do: Callable[[_T], _R], tasks: Iterable[_T]) -> list[_R]:
    """Do tasks by as many threads as faiss may have; returns the results in order."""
    with ThreadPoolExecutor(_FAISS.omp_get_max_threads(), initializer=_alone) as pool:
        return list(pool.map(do, tasks))


def safe_after_fork(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Decorate a function that calls faiss: in a forked child it has one thread, whichever thread calls it."""

    @wraps(function)
    def guarded(*args: _P.args, **options: _P.kwargs) -> _R:
        if forks.count() and getattr(_ALONE, "since", 0) != forks.count():
            _alone()
        return function(*args, **options)

    return guarded


def _alone() -> None:
    """Give faiss one thread for what this thread calls: the number is kept for each thread."""
    _FAISS.omp_set_num_threads(1)
    _ALONE.since = forks.count()


forks.after_fork(_alone)
