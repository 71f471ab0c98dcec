"""Many small tasks of faiss, side by side: each by one thread, so that threads do not wait for each other in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import faiss

_T = TypeVar("_T")
_R = TypeVar("_R")

_FAISS: Final[Any] = faiss  # its stubs do not have all of it


def side_by_side(do: Callable[[_T], _R], tasks: Iterable[_T]) -> list[_R]:
    """Do tasks by as many threads as faiss may have; returns the results in order."""
    with ThreadPoolExecutor(_FAISS.omp_get_max_threads(), initializer=_alone) as pool:
        return list(pool.map(do, tasks))


def _alone() -> None:
    """One thread for what this one calls: the number is kept for each thread."""
    _FAISS.omp_set_num_threads(1)
