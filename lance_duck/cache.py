"""Caches that drop the least recently used values, limited by number or by total size.

Hits, misses and evictions are counted in caches that are limited by size.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

from lance_duck.forks import Lock
from lance_duck.telemetry.metrics import CACHE_EVICTED_BYTES, CACHE_HITS, CACHE_MISSES

_T = TypeVar("_T")
_LOG: Final = logging.getLogger(__name__)

_USES_OF_A_SIZE = 64  # sizes of growing values are measured again after this many uses


class LruCache(Generic[_T]):
    """The most recently used values, by key. Thread-safe, but two threads may compute the same value concurrently.

    Reading a value marks it, without a lock. To make room, the cache drops the oldest value without a mark. Older
    values with a mark lose the mark and count as new.

    Args:
        limit: Maximum number of values.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, _Entry[_T]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the value of a key. If it is not cached, call `make` and store its result."""
        entry = self._entries.get(key)
        if entry is None:
            return self.put(key, make())
        entry.is_marked = True
        return entry.value

    def find(self, key: Hashable) -> _T | None:
        """Return the value of a key. Returns None if the key is not cached."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        entry.is_marked = True
        return entry.value

    def put(self, key: Hashable, value: _T) -> _T:
        """Store a value unless its key already has a value. Returns the stored value of the key."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                return entry.value
            while len(self._entries) >= max(1, self._limit):
                oldest, entry = self._entries.popitem(last=False)
                if entry.is_marked:
                    entry.is_marked = False
                    self._entries[oldest] = entry
            self._entries[key] = _Entry(value)
            return value

    def key_of(self, value: _T) -> Hashable | None:
        """Return the key of an object, compared by identity, or None. Fast for the last stored value."""
        with self._lock:
            return next((key for key, entry in reversed(self._entries.items()) if entry.value is value), None)

    def drop(self, key: Hashable) -> None:
        """Remove a key and its value."""
        with self._lock:
            self._entries.pop(key, None)

    def drop_where(self, is_gone: Callable[[Any], bool]) -> None:
        """Remove all keys for which a function returns True, and their values."""
        with self._lock:
            for key in [key for key in self._entries if is_gone(key)]:
                del self._entries[key]


class _Entry(Generic[_T]):
    """A cached value, and a mark that is set when the value is read."""

    __slots__ = ("is_marked", "value")

    def __init__(self, value: _T) -> None:
        self.value = value
        self.is_marked = False


class SizedCache(Generic[_T]):
    """The most recently used values, by key, limited by total size. Safe to use from several threads.

    The most recently used value remains cached even if it is larger than the limit. A large value counts for at most
    three quarters of the limit. This leaves room for small values.

    Args:
        limit: Maximum total size of all values in bytes.
        size: Returns the size of a value in bytes.
        grows: Whether values grow during use. Their size is then measured repeatedly.
    """

    def __init__(self, limit: int, size: Callable[[_T], int], *, grows: bool = False) -> None:
        self._limit = limit
        self._most = limit - limit // 4
        self._size = size
        self._grows = grows
        self._lock = Lock()
        self._values: OrderedDict[Hashable, tuple[_T, int]] = OrderedDict()
        self._making: dict[Hashable, Lock] = {}
        self._nbytes = 0
        self._counted = 0  # like `_nbytes`, but a large value counts for three quarters of the limit
        self._uses = 0

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the value of a key. If it is not cached, call `make` once, even if several threads request it.

        If `make` raises an error, nothing is stored.
        """
        value = self.find(key)
        if value is not None:
            return value
        with self._lock:
            making = self._making.setdefault(key, Lock())
        with making:
            value = self._found(key)
            if value is None:
                value = make()
                self.put(key, value)
        return value

    def find(self, key: Hashable) -> _T | None:
        """Return the value of a key. Returns None if the key is not cached."""
        value = self._found(key)
        (CACHE_MISSES if value is None else CACHE_HITS).add("memory")
        return value

    def _found(self, key: Hashable) -> _T | None:
        evicted = 0
        with self._lock:
            entry = self._values.get(key)
            if entry is None:
                return None
            self._values.move_to_end(key)
            self._uses += 1
            if self._grows and self._uses >= _USES_OF_A_SIZE:
                self._measure()
                evicted = self._shrink()
        if evicted:
            _note_evicted(evicted)
        return entry[0]

    def find_all(self, keys: Sequence[Hashable]) -> list[_T] | None:
        """Return the values of keys. Returns None, and does not count a miss, unless all keys are cached."""
        values = []
        with self._lock:
            for key in keys:
                entry = self._values.get(key)
                if entry is None:
                    return None
                self._values.move_to_end(key)
                values.append(entry[0])
        CACHE_HITS.add("memory", by=len(values))
        return values

    def put(self, key: Hashable, value: _T) -> None:
        """Store a value unless its key already has a value."""
        size = self._size(value)
        with self._lock:
            self._making.pop(key, None)
            if key in self._values:
                return
            if self._grows:
                self._measure()
            self._values[key] = value, size
            self._count(size)
            evicted = self._shrink()
        if evicted:
            _note_evicted(evicted)

    def drop(self, key: Hashable) -> None:
        """Remove a key and its value."""
        with self._lock:
            entry = self._values.pop(key, None)
            if entry is not None:
                self._discount(entry[1])

    def drop_where(self, is_gone: Callable[[Any], bool]) -> None:
        """Remove all keys for which a function returns True, and their values."""
        with self._lock:
            for key in [key for key in self._values if is_gone(key)]:
                self._discount(self._values.pop(key)[1])

    @property
    def nbytes(self) -> int:
        """Total size of all values in bytes."""
        with self._lock:
            if self._grows:
                self._measure()
            return self._nbytes

    def __contains__(self, key: Hashable) -> bool:
        with self._lock:
            return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def _measure(self) -> None:
        self._uses = self._nbytes = self._counted = 0
        for key, (value, _) in self._values.items():
            size = self._size(value)
            self._values[key] = value, size
            self._count(size)

    def _shrink(self) -> int:
        """Drop the oldest values until the rest is within the limit. Returns the dropped bytes."""
        dropped = 0
        while self._counted > self._limit and len(self._values) > 1:
            _, (_, size) = self._values.popitem(last=False)
            self._discount(size)
            dropped += size
        return dropped

    def _count(self, size: int) -> None:
        self._nbytes += size
        self._counted += min(size, self._most)

    def _discount(self, size: int) -> None:
        self._nbytes -= size
        self._counted -= min(size, self._most)


def _note_evicted(size: int) -> None:
    """Count evicted bytes. Called without the lock of the cache, because handlers of the log may take long."""
    CACHE_EVICTED_BYTES.add("memory", by=size)
    _LOG.debug("evicted %d bytes from a cache", size)
