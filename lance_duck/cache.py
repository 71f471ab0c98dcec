"""Caches of the least recently used kind, limited by number of entries or by bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from lance_duck.forks import Lock

_T = TypeVar("_T")

_LOOKS = 64  # things grow while they are used: their sizes are asked again after so many uses


class LruCache(Generic[_T]):
    """The last things used, by key. Safe to use from several threads; two that ask at once may both make a thing.

    Args:
        limit: Things that are kept.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._found: OrderedDict[Hashable, _T] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the thing of a key; made when it is not there."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        made = make()
        with self._lock:
            made = self._found.setdefault(key, made)
            while len(self._found) > self._limit:
                self._found.popitem(last=False)
        return made

    def drop(self, key: Hashable) -> None:
        """Keep the thing of a key no longer."""
        with self._lock:
            self._found.pop(key, None)


class KeptBySize(Generic[_T]):
    """The last things used, by key, each made once however many threads ask for it at the same time.

    Args:
        limit: Bytes that are kept. The thing used last is kept even when it is larger; a large thing counts for three
            quarters of the limit at most, so that small ones stay beside it.
        size: Bytes of a thing; asked again and again, for things that grow.
    """

    def __init__(self, limit: int, size: Callable[[_T], int]) -> None:
        self._limit = limit
        self._most = limit - limit // 4
        self._size = size
        self._lock = Lock()
        self._found: OrderedDict[Hashable, _T] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._looks = 0

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the thing of a key; made when it is not there. What `make` raises is raised, and it is not kept."""
        found = self._look(key)
        if found is not None:
            return found
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            found = self._look(key)
            if found is None:
                found = make()
                self._keep(key, found)
        return found

    def drop(self, key: Hashable) -> None:
        """Keep the thing of a key no longer."""
        with self._lock:
            self._found.pop(key, None)

    @property
    def nbytes(self) -> int:
        """Bytes of all things that are kept."""
        with self._lock:
            return sum(map(self._size, self._found.values()))

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._found

    def _look(self, key: Hashable) -> _T | None:
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                self._looks += 1
                if self._looks >= _LOOKS:
                    self._shrink()
            return found

    def _keep(self, key: Hashable, made: _T) -> None:
        with self._lock:
            self._found[key] = made
            self._making.pop(key, None)
            self._shrink()

    def _shrink(self) -> None:
        self._looks = 0
        sizes = {key: min(self._size(thing), self._most) for key, thing in self._found.items()}
        total = sum(sizes.values())
        while total > self._limit and len(self._found) > 1:
            key, _ = self._found.popitem(last=False)
            total -= sizes[key]
