"""Reads of local files through memory maps.

A read returns a view of the map: nothing is copied, and the page cache is shared with other processes. Pages that were
read count as memory of the process until they are released. All maps therefore share one budget (`residency`). If the
touched pages exceed it, the least recently used maps release their pages. Views remain valid, and read from the page
cache again. Searches repeatedly rerank random rows of the same pages. These pages have a larger budget
(`repeated_residency`), because mapping a page again takes longer than reading one of its rows.

Caches keep many files open. All maps therefore also share one limit on their number (`open_maps`). Files that were not
read for a long time are unmapped, and mapped again on the next read. While a deleted file is mapped, its bytes remain
on disk. Deleted files are therefore unmapped soon after their last use.

The system's readahead is disabled, because it cannot predict which bytes a query skips. Instead, requested ranges are
prefetched. Single rows are prefetched only if a sample of them is not in memory, because a prefetch call takes longer
than reading memory.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import BinaryIO, Final
from weakref import KeyedRef

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, StoreError
from lance_duck.forks import Lock
from lance_duck.store import pages
from lance_duck.store.base import check_range
from lance_duck.store.costs import (
    MAPPED_FILES,
    NOTED_AHEAD,
    RANGES_AHEAD,
    READS_TRUSTED,
    REPEATED_BYTES,
    RESIDENT_BYTES,
    SAMPLED_PLACES,
    SWEPT_EVERY,
)
from lance_duck.store.pages import FilePages
from lance_duck.store.request import Bytes

Int64s = NDArray[np.int64]
Spans = Callable[[Int64s], tuple[Int64s, Int64s]]

_CAN_PLAN = pages.RANDOM is not None and pages.WILL_NEED is not None
_NUMBERS: Final = count()
_EMPTY = np.empty(0, np.uint8)
_EMPTY.setflags(write=False)


class MappedFile:
    """A `ByteSource` over a memory-mapped file."""

    remote = False

    def __init__(self, path: str, size: int | None = None) -> None:
        self.path = path
        self.number = next(_NUMBERS)
        self.is_used = True
        self._identity: tuple[int, int, int, int] | None = None
        self.size = 0
        self._pages = self._mapped()
        if size is not None and size != self.size:
            raise CorruptError("the file size differs from the manifest", where=path, expected=size, found=self.size)
        self._noted = 0  # bytes that `residency` has counted in advance
        self._trusted: dict[int, int] = {}  # by offset: number of reads that may still skip the memory check
        if self.size:
            open_maps.add(self)

    def _mapped(self) -> FilePages | None:
        """Map the file, unless it is empty. Raises StoreError if the file was replaced since it was first opened."""
        with translated(self.path), open_regular(self.path) as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            if self._identity not in (None, identity):
                raise StoreError("the file was replaced while it was open", where=self.path, remedy="open it again")
            self._identity, self.size = identity, status.st_size
            if not status.st_size:
                return None
            mapped = FilePages(file.fileno(), status.st_size)
        mapped.advise(pages.RANDOM)
        return mapped

    def _held(self) -> FilePages:
        """Return the pages of a file that is not empty. Maps the file again if it was unmapped."""
        self.is_used = True
        held = self._pages
        if held is None:
            held = self._mapped()
            assert held is not None
            self._pages = held
            open_maps.add(self)
        return held

    @property
    def is_deleted(self) -> bool:
        """Whether the file was renamed, deleted or replaced."""
        try:
            status = os.stat(self.path)
        except OSError:
            return True
        return self._identity is None or (status.st_dev, status.st_ino) != self._identity[:2]

    def let_go(self) -> None:
        """Unmap the file once its last view is gone. The next read maps it again."""
        self._pages = None

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return a read-only view for each (offset, size). Raises CorruptError beyond the end."""
        pieces, touched = [], 0
        end = self.size
        held = self._held() if end else None
        data = _EMPTY if held is None else held.data
        is_one_of_few = 1 < len(ranges) <= RANGES_AHEAD  # without prefetching, the pages would be read one by one
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > end:
                check_range(self.path, end, offset, length)
            pieces.append(data[offset : offset + length])
            touched += length
            start = offset - offset % mmap.PAGESIZE
            if (offset + length - start > mmap.PAGESIZE or is_one_of_few) and length and _CAN_PLAN:
                held.advise(pages.WILL_NEED, start, offset + length - start)  # type: ignore[union-attr]
        self._touch(touched)
        return pieces

    def look(self, offset: int, size: int, touched: int, *, repeats: bool = False) -> Bytes:
        """Return a view of a byte range. The caller will read about `touched` bytes of it, at unknown positions.

        Args:
            offset: Start of the byte range.
            size: Size of the byte range.
            touched: Number of bytes that will be read.
            repeats: Whether reads of the same bytes will follow. The pages then belong to the larger budget.
        """
        if offset < 0 or size < 0 or offset + size > self.size:
            check_range(self.path, self.size, offset, size)
        if repeats:
            repeated_residency.touch(self, min(size, touched))
        else:
            self._touch(min(size, touched))
        return self._held().data[offset : offset + size] if self.size else _EMPTY

    def read_ahead(self, offset: int, rows: Int64s, spans: Spans) -> None:
        """Prefetch the bytes of rows concurrently, unless a sample of the bytes is in memory.

        Args:
            offset: File offset to which `spans` is relative.
            rows: Ascending rows to read.
            spans: Returns the start and end of each row's bytes, relative to `offset`, both ascending.
        """
        if not _CAN_PLAN or not self.size:
            return
        held = self._held()
        trusted = self._trusted.get(offset, 0)
        if trusted:
            self._trusted[offset] = trusted - 1
            return
        sample = rows[:: -(-len(rows) // SAMPLED_PLACES)]
        if pages.are_resident(held.data, spans(sample)[0] + offset):
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
                held.advise(pages.WILL_NEED, begin, stop - begin)

    def release(self, offset: int = 0, size: int | None = None) -> None:
        """Release the pages of a range that will not be read soon. Its views remain valid."""
        held = self._pages
        if held is None:
            return
        self._noted = 0
        stop = self.size if size is None else min(offset + size, self.size)
        start = offset - offset % mmap.PAGESIZE
        held.advise(pages.DONT_NEED, start, stop - start)

    def _touch(self, size: int) -> None:
        """Count bytes that are about to be read, unless they were counted in advance."""
        ahead = self._noted - size
        if ahead < 0:
            residency.touch(self, size + NOTED_AHEAD)
            ahead = NOTED_AHEAD
        self._noted = ahead


class Residency:
    """The budget for pages of memory maps that remain resident.

    Args:
        budget: Maximum touched bytes over all maps. Above it, the least recently used maps are released.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.total = 0
        self._touched: dict[int, tuple[KeyedRef[int, MappedFile], int]] = {}
        # Maps may be collected inside touch(), which holds the lock. The callback therefore only records the event. It
        # is a C function, because a Ctrl-C inside a Python callback is lost.
        self._dead: deque[KeyedRef[int, MappedFile]] = deque()
        # Views that are used after a release load pages again. Each map is therefore released once more the next time.
        self._released: list[KeyedRef[int, MappedFile]] = []
        self._lock = Lock()

    def touch(self, source: MappedFile, size: int) -> None:
        """Count `size` bytes of a map that are about to be read."""
        key = id(source)
        with self._lock:
            self._drop_dead()
            ref, before = self._touched.pop(key, (None, 0))
            after = min(before + size, source.size)
            self._touched[key] = (ref or KeyedRef(source, self._dead.append, key), after)
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
            self.total -= self._touched.pop(self._dead.popleft().key, (None, 0))[1]


class OpenMaps:
    """The open maps of all files, limited in number.

    Args:
        limit: Number of maps above which the least recently used are unmapped.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._files: dict[int, KeyedRef[int, MappedFile]] = {}
        self._dead: deque[KeyedRef[int, MappedFile]] = deque()  # see `Residency`
        self._opened = 0
        self._lock = Lock()

    def add(self, file: MappedFile) -> None:
        """Record that a file is mapped."""
        number = file.number
        with self._lock:
            while self._dead:
                self._files.pop(self._dead.popleft().key, None)
            self._files.pop(number, None)
            self._files[number] = KeyedRef(file, self._dead.append, number)
            self._opened += 1
            if len(self._files) > self._limit:
                self._let_go_unused()
            elif self._opened >= max(SWEPT_EVERY, len(self._files) // 4):
                self._let_go_deleted()

    def let_go_below(self, folder: str) -> None:
        """Unmap all files below a folder. The next read maps a file again."""
        with self._lock:
            for number, ref in list(self._files.items()):
                file = ref()
                if file is not None and file.path.startswith(os.path.join(folder, "")):
                    del self._files[number]
                    file.let_go()

    def __len__(self) -> int:
        return len(self._files) - len(self._dead)

    def _let_go_unused(self) -> None:
        """Unmap a quarter of the files, starting with files that were not read since the last call."""
        for again in (False, True):
            for number, ref in list(self._files.items())[:-1]:
                if len(self._files) <= self._limit - self._limit // 4:
                    return
                file = ref()
                if file is not None and file.is_used and not again:
                    file.is_used = False
                    self._files[number] = self._files.pop(number)
                    continue
                del self._files[number]
                if file is not None:
                    file.let_go()

    def _let_go_deleted(self) -> None:
        """Unmap deleted files that were not read since the last call."""
        self._opened = 0
        for number, ref in list(self._files.items()):
            file = ref()
            if file is not None and file.is_used:
                file.is_used = False
            elif file is None or file.is_deleted:
                del self._files[number]
                if file is not None:
                    file.let_go()


open_maps = OpenMaps(MAPPED_FILES)


def let_go_below(folder: str) -> None:
    """Unmap the files below a folder once their last views are gone. The next read maps a file again."""
    open_maps.let_go_below(os.path.realpath(folder))


residency = Residency(RESIDENT_BYTES)
repeated_residency = Residency(REPEATED_BYTES)


def open_regular(path: str) -> BinaryIO:
    """Open a regular file for reading. Raises OSError, and StoreError for a pipe or device."""
    if not stat.S_ISREG(os.stat(path).st_mode):  # opening a named pipe would wait for its writer
        raise StoreError("not a regular file", where=path)
    return open(path, "rb")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Translate operating system errors while reading."""
    try:
        yield
    except LanceDuckError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError("no such file", where=where) from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            raise NotFoundError("no such file", where=where) from error
        raise StoreError(getattr(error, "strerror", None) or str(error), where=where) from error
