"""Files on local disks: memory-mapped to read, written by `local_write`.

A read is a view of the map: nothing is copied, and the page cache is shared with other processes. Pages that were
read count as memory of the process until they are given back, so all maps share one budget (`residency`): when the
pages touched since the last release exceed it, the longest unused maps give theirs back. A view stays valid; it reads
from the page cache again.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import BinaryIO

import numpy as np

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, StoreError
from lance_duck.store import local_write
from lance_duck.store.base import Buffer, Entry, Sink, check_range, leaves_root
from lance_duck.store.external import ExternalManifestStore
from lance_duck.store.flush import unflushed
from lance_duck.store.request import Bytes

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

RESIDENT_BUDGET = 64 << 20

_MOST_FILES = 65_536
_CAN_RELEASE = hasattr(mmap, "MADV_DONTNEED") and hasattr(mmap.mmap, "madvise")
_EMPTY = np.empty(0, np.uint8)
_EMPTY.setflags(write=False)


class MappedFile:
    """A `ByteSource` over a memory-mapped file."""

    remote = False

    def __init__(self, path: str, size: int | None = None) -> None:
        self.path = path
        with _translated(path):
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
        self._bytes: Bytes = _EMPTY if self._map is None else np.frombuffer(self._map, np.uint8)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return a read-only view for each (offset, size); raises CorruptError beyond the end."""
        found, touched = [], 0
        data, end = self._bytes, self.size
        for offset, length in ranges:
            if offset < 0 or length < 0 or offset + length > end:
                check_range(self.path, end, offset, length)
            found.append(data[offset : offset + length])
            touched += length
        residency.touch(self, touched)
        return found

    def release(self, offset: int = 0, size: int | None = None) -> None:
        """Hint that a range will not be read soon, so that its pages need not stay resident. Views of it stay valid."""
        if self._map is None or not _CAN_RELEASE:
            return
        stop = self.size if size is None else min(offset + size, self.size)
        start = offset - offset % mmap.PAGESIZE
        if 0 <= start < stop:
            self._map.madvise(mmap.MADV_DONTNEED, start, stop - start)


class Residency:
    """Keeps the pages that maps hold resident within a budget.

    Args:
        budget: Bytes that all maps together may have touched before the longest unused are released.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.total = 0
        self._touched: dict[int, tuple[weakref.ref[MappedFile], int]] = {}
        # Maps may be collected inside touch(), where the lock is held: the callback only leaves a note.
        self._dead: deque[int] = deque()
        # Views that are used after a release bring pages back: each map is released once more the next time.
        self._released: list[weakref.ref[MappedFile]] = []
        self._lock = threading.Lock()

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
        again, self._released = self._released, []
        for key in list(self._touched):
            if self.total <= self.budget // 2:
                break
            ref, size = self._touched.pop(key)
            self.total -= size
            self._released.append(ref)
        return [source for ref in (*again, *self._released) if (source := ref()) is not None]

    def _drop_dead(self) -> None:
        while self._dead:
            self.total -= self._touched.pop(self._dead.popleft(), (None, 0))[1]


residency = Residency(RESIDENT_BUDGET)


class LocalStore:
    """A directory on a local disk.

    Args:
        root: The directory; may itself be reached through symbolic links.
        allowed: Other directories that paths and symbolic links may lead into.
        fsync: Whether what is written is flushed to the disk.
        external: See `Store.external`.
    """

    can_list = True

    def __init__(
        self,
        root: str,
        allowed: Sequence[str] = (),
        *,
        fsync: bool = True,
        external: ExternalManifestStore | None = None,
    ) -> None:
        self.uri = os.path.abspath(root)
        self._root = os.path.realpath(root)
        self._allowed = tuple(os.path.realpath(a) for a in allowed)
        self._fsync = fsync
        self.external = external

    def allowing(self, roots: Sequence[str]) -> LocalStore:
        """The same store, with more directories that paths may lead into."""
        return LocalStore(self.uri, (*self._allowed, *roots), fsync=self._fsync, external=self.external)

    def get(self, path: str) -> bytes:
        """See `Store.get`."""
        place = self._place(path)
        with _translated(place), _open_regular(place) as file:
            return file.read()

    def open(self, path: str, size: int | None = None) -> MappedFile:
        """See `Store.open`."""
        return MappedFile(self._place(path), size)

    def entries(self, directory: str) -> Iterator[Entry]:
        """See `Store.entries`."""
        place = self._place(directory)
        for name in self.names(directory):
            try:
                found = os.stat(os.path.join(place, name))
            except FileNotFoundError:
                continue  # a temporary file that its writer has renamed meanwhile
            yield Entry(f"{directory.strip('/')}/{name}", found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def names(self, directory: str) -> Iterator[str]:
        """See `Store.names`."""
        place = self._place(directory)
        try:
            with _translated(place), os.scandir(place) as found:
                files = sorted(f.name for f in found if f.is_file())
        except NotFoundError:
            return
        yield from files

    def exists(self, path: str) -> bool:
        """See `Store.exists`."""
        return os.path.isfile(self._place(path))

    def folders(self) -> list[str] | None:
        """See `Store.folders`."""
        try:
            with _translated(self.uri), os.scandir(self._root) as found:
                return sorted(entry.name for entry in found if entry.is_dir())
        except NotFoundError:
            return None

    def create(self, path: str) -> Sink:
        """See `Store.create`."""
        return local_write.LocalSink(self._own_place(path), fsync=self._fsync)

    def put(self, path: str, data: Buffer, *, safe: bool = True) -> None:
        """See `Store.put`."""
        local_write.put(self._own_place(path), data, fsync=self._fsync and safe)

    def put_if_absent(self, path: str, data: Buffer) -> None:
        """See `Store.put_if_absent`."""
        place = self._own_place(path)
        local_write.put_if_absent(place, data, self._root_of(place) or self._root, fsync=self._fsync)

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        for path in paths:
            place = self._own_place(path)
            local_write.delete(place, self._root_of(place) or self._root, fsync=self._fsync)

    def walk(self, directory: str = "") -> Iterator[Entry]:
        """See `Store.walk`."""
        top = self._place(directory) if directory.strip("/") else self._root
        shown = directory.strip("/")
        with _translated(top):
            for folder, _, names in os.walk(top, onerror=_raise_unless_gone):
                inner = os.path.relpath(folder, top).replace(os.sep, "/")
                prefix = "/".join(part for part in (shown, "" if inner == "." else inner) if part)
                for name in names:
                    try:
                        found = os.lstat(os.path.join(folder, name))
                    except FileNotFoundError:
                        continue
                    modified = datetime.fromtimestamp(found.st_mtime, UTC)
                    yield Entry(f"{prefix}/{name}" if prefix else name, found.st_size, modified)

    def copy(self, source: str, path: str) -> None:
        """See `Store.copy`."""
        start, end = self._place(source), self._own_place(path)
        with _translated(start):
            opened = _open_regular(start)
        with opened:
            local_write.copy(opened, end, fsync=self._fsync)

    def sync(self) -> None:
        """See `Store.sync`."""
        if self._fsync:
            for root in (self._root, *self._allowed):
                with local_write.translated(root):
                    unflushed.flush(root)

    def _place(self, path: str) -> str:
        if "\0" in path or not path:
            raise leaves_root(path, self.uri)
        place = os.path.realpath(os.path.join(self._root, path))
        if self._root_of(place) is None:
            raise leaves_root(path, self.uri)
        return place

    def _own_place(self, path: str) -> str:
        """The place of a name itself, also when a link has it: to be replaced or deleted."""
        folder, name = os.path.split(os.path.join(self._root, path)) if path and "\0" not in path else ("", "")
        place = os.path.join(os.path.realpath(folder), name)
        if name in ("", ".", "..") or self._root_of(place) is None:
            raise leaves_root(path, self.uri)
        return place

    def _root_of(self, place: str) -> str | None:
        for root in (self._root, *self._allowed):
            if place.startswith(root + os.sep) or (root == os.sep and place != os.sep):
                return root
        return None


def _open_regular(path: str) -> BinaryIO:
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a named pipe would wait for its writer
        raise StoreError("not a regular file", where=path)
    return open(path, "rb")


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _map_file(path: str) -> tuple[int, mmap.mmap | None]:
    with _open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return size, mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) if size else None


def _raise_file_limit() -> bool:
    """Let the process open as many files as it may: a map holds its file open. Whether that gave room."""
    if resource is None:
        return False
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, _MOST_FILES) if hard != resource.RLIM_INFINITY else _MOST_FILES
    if soft >= wanted:
        return False
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return True


@contextmanager
def _translated(where: str) -> Iterator[None]:
    """Turn errors of the operating system into those of this package."""
    try:
        yield
    except LanceDuckError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFoundError("no such file", where=where) from error
    except (OSError, ValueError) as error:
        raise StoreError(getattr(error, "strerror", None) or str(error), where=where) from error
