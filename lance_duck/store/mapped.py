"""Reads of local files through memory maps.

A read is a view of the map: nothing is copied, and the page cache is shared with other processes. Pages that were
read count as memory of the process until they are given back, so all maps share one budget (`residency`): when the
pages touched since the last release exceed it, the longest unused maps give theirs back. A view stays valid; it reads
from the page cache again. Rows that searches rank again come by chance from the same pages each time, which have a
larger budget (`repeated_residency`): to map a page again takes longer than to read a row of it.

The system reads nothing ahead on its own, for it cannot know what a query skips: it is told which ranges are asked for.
It is told of single rows only when a sample of them is not in memory, for telling takes longer than reading memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, StoreError
from lance_duck.forks import Lock
from lance_duck.store import pages
from lance_duck.store.base import check_range
from lance_duck.store.costs import (
    NOTED_AHEAD,
    OPEN_FILES,
    RANGES_AHEAD,
    READS_TRUSTED,
    REPEATED_BYTES,
    RESIDENT_BYTES,
    SAMPLED_PLACES,
)
from lance_duck.store.request import Bytes

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]


Int64s = NDArray[np.int64]
Spans = Callable[[Int64s], tuple[Int64s, Int64s]]

_CAN_RELEASE = hasattr(mmap, "MADV_DONTNEED") and hasattr(mmap.mmap, "madvise")
_CAN_PLAN = hasattr(mmap, "MADV_RANDOM") and hasattr(mmap, "MADV_WILLNEED")
_EMPTY = np.empty(0, np.uint8)
_EMPTY.setflags(write=False)


class MappedFile:
    """A `ByteSource` over a memory-mapped file."""

    remote = False

    def __init__(self, path: str, size: int | None = None) -> None:
        self.path = path
        with translated(path):
            try:
                self.size, self._map = _map_file(path)
            except OSError as error:
                if error.errno != errno.EMFILE or not _raise_file_limit():
                    raise
                self.size, self._map = _map_file(path)
        if size is not None and size != self.size:
            raise CorruptError(
                "file has another size than its manifest says", where=path, expected=size, found=self.size
            )
        self._noted = 0  # bytes that `residency` counts and that were not read yet
        self._trusted: dict[int, int] = {}  # by place: number of reads that go unchecked, after one that was in memory
        self._bytes: Bytes = _EMPTY if self._map is None else np.frombuffer(self._map, np.uint8)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return a read-only view for each (offset, size); raises CorruptError beyond the end."""
        pieces, touched = [], 0
        data, end = self._bytes, self.size
        is_one_of_few = 1 < len(ranges) <= RANGES_AHEAD  # a page each, which would be waited for one by one
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > end:
                check_range(self.path, end, offset, length)
            pieces.append(data[offset : offset + length])
            touched += length
            start = offset - offset % mmap.PAGESIZE
            if (offset + length - start > mmap.PAGESIZE or is_one_of_few) and length and _CAN_PLAN:
                self._map.madvise(mmap.MADV_WILLNEED, start, offset + length - start)  # type: ignore[union-attr]
        self._touch(touched)
        return pieces

    def look(self, offset: int, size: int, touched: int, *, repeats: bool = False) -> Bytes:
        """Return a view of bytes, of which only about `touched` will be read; it is unknown which.

        Args:
            offset: Where the bytes begin.
            size: Number of bytes.
            touched: Number of bytes that will be read.
            repeats: Whether reads of the same bytes will follow: pages then count for a larger budget.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            check_range(self.path, self.size, offset, size)
        if repeats:
            repeated_residency.touch(self, min(size, touched))
        else:
            self._touch(min(size, touched))
        return self._bytes[offset : offset + size]

    def read_ahead(self, offset: int, rows: Int64s, spans: Spans) -> None:
        """Have the system read the bytes of rows side by side, unless a sample of them is in memory.

        Args:
            offset: Where the bytes of all rows begin.
            rows: Rows that are about to be read, ascending.
            spans: From ascending rows to where their bytes begin and end, counted from `offset`, ascending, too.
        """
        if not _CAN_PLAN or self._map is None:
            return
        trusted = self._trusted.get(offset, 0)
        if trusted:
            self._trusted[offset] = trusted - 1
            return
        sample = rows[:: -(-len(rows) // SAMPLED_PLACES)]
        if pages.are_resident(self._bytes, spans(sample)[0] + offset):
            self._trusted[offset] = READS_TRUSTED
            return
        starts, ends = (place + offset for place in spans(rows))
        first = starts // mmap.PAGESIZE
        last = np.maximum.accumulate((ends - 1) // mmap.PAGESIZE)
        is_apart = first[1:] > last[:-1] + 1
        begins = first[np.append(True, is_apart)]
        stops = last[np.append(is_apart, True)] + 1
        for begin, stop in zip((begins * mmap.PAGESIZE).tolist(), (stops * mmap.PAGESIZE).tolist(), strict=True):
            if begin < stop <= self.size + mmap.PAGESIZE:
                self._map.madvise(mmap.MADV_WILLNEED, begin, stop - begin)

    def release(self, offset: int = 0, size: int | None = None) -> None:
        """Release the pages of a range that will not be read soon; views of it stay valid."""
        if self._map is None or not _CAN_RELEASE:
            return
        self._noted = 0
        stop = self.size if size is None else min(offset + size, self.size)
        start = offset - offset % mmap.PAGESIZE
        if 0 <= start < stop:
            self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _touch(self, size: int) -> None:
        """Note that bytes are about to be read, unless as many were noted ahead."""
        ahead = self._noted - size
        if ahead < 0:
            residency.touch(self, size + NOTED_AHEAD)
            ahead = NOTED_AHEAD
        self._noted = ahead


class Residency:
    """The budget of pages that maps hold resident.

    Args:
        budget: Bytes that all maps together may have touched before the least recently used are released.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.total = 0
        self._touched: dict[int, tuple[weakref.ref[MappedFile], int]] = {}
        # Maps may be collected inside touch(), where the lock is held: the callback only leaves a note.
        self._dead: deque[int] = deque()
        # Views that are used after a release bring pages back: each map is released once more the next time.
        self._released: list[weakref.ref[MappedFile]] = []
        self._lock = Lock()

    def touch(self, source: MappedFile, size: int) -> None:
        """Note that `size` bytes of a map are about to be read."""
        key = id(source)
        with self._lock:
            self._drop_dead()
            ref, before = self._touched.pop(key, (None, 0))
            after = min(before + size, source.size)
            self._touched[key] = (ref or weakref.ref(source, lambda _: self._dead.append(key)), after)
            self.total += after - before
            victims = self._pop_victims() if self.total > self.budget else []
        for victim in victims:
            victim.release()

    def _pop_victims(self) -> list[MappedFile]:
        released_before, self._released = self._released, []
        for key in list(self._touched):
            if self.total <= self.budget // 2:
                break
            ref, size = self._touched.pop(key)
            self.total -= size
            self._released.append(ref)
        return [source for ref in (*released_before, *self._released) if (source := ref()) is not None]

    def _drop_dead(self) -> None:
        while self._dead:
            self.total -= self._touched.pop(self._dead.popleft(), (None, 0))[1]


residency = Residency(RESIDENT_BYTES)
repeated_residency = Residency(REPEATED_BYTES)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading. Raises OSError, and StoreError for a pipe or device."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a named pipe would wait for its writer
        raise StoreError("not a regular file", where=path)
    return open(path, "rb")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn errors of the operating system while reading into those of this package."""
    try:
        yield
    except LanceDuckError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError("no such file", where=where) from error
    except (OSError, ValueError) as error:
        raise StoreError(getattr(error, "strerror", None) or str(error), where=where) from error


def _map_file(path: str) -> tuple[int, mmap.mmap | None]:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return 0, None
        mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        if _CAN_PLAN:
            mapping.madvise(mmap.MADV_RANDOM)
        return size, mapping


def _raise_file_limit() -> bool:
    """Raise the process's limit of open files, for a map holds its file open; return whether there is more room."""
    if resource is None:
        return False
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = min(hard, OPEN_FILES) if hard != resource.RLIM_INFINITY else OPEN_FILES
    if soft >= limit:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return True
