"""Files on local disks: read by `mapped`, written by `local_write`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from lance_duck.errors import NotFoundError
from lance_duck.store import local_write
from lance_duck.store.base import Entry, leaves_root
from lance_duck.store.external import ExternalManifestStore
from lance_duck.store.flush import unflushed
from lance_duck.store.mapped import MappedFile, open_regular, translated
from lance_duck.store.sink import Buffer, Sink
from lance_duck.telemetry.metrics import BYTES_READ


class LocalStore:
    """A directory on a local disk.

    Args:
        root: The directory. Its path may contain symbolic links.
        allowed: Other directories that paths and symbolic links may lead into.
        fsync: Whether writes are flushed to the disk.
        external: See `Store.external`.
        checksums: See `Store.checksums`.
    """

    can_list = True

    def __init__(
        self,
        root: str,
        allowed: Sequence[str] = (),
        *,
        fsync: bool = True,
        external: ExternalManifestStore | None = None,
        checksums: bool = True,
    ) -> None:
        self.uri = os.path.abspath(root)
        self._root = os.path.realpath(root)
        self._roots = (self._root, *(os.path.realpath(a) for a in allowed))
        self._fsync = fsync
        self.external = external
        self.checksums = checksums

    def get(self, path: str) -> bytes:
        """See `Store.get`."""
        place = self._place(path)
        with translated(place), open_regular(place) as file:
            data = file.read()
        BYTES_READ.add("disk", by=len(data))
        return data

    def open(self, path: str, size: int | None = None) -> MappedFile:
        """See `Store.open`."""
        return MappedFile(self._place(path), size)

    def entries(self, directory: str) -> Iterator[Entry]:
        """See `Store.entries`."""
        place = self._place(directory)
        for name in self.names(directory):
            try:
                status = os.stat(os.path.join(place, name))
            except FileNotFoundError:
                continue  # a temporary file that its writer has renamed in the meantime
            if stat.S_ISREG(status.st_mode):
                yield Entry(
                    f"{directory.strip('/')}/{name}", status.st_size, datetime.fromtimestamp(status.st_mtime, UTC)
                )

    def names(self, directory: str) -> Iterator[str]:
        """See `Store.names`."""
        yield from sorted(self.names_at_once(directory))

    def names_at_once(self, directory: str) -> list[str]:
        """See `Store.names_at_once`."""
        place = self._place(directory)
        try:
            with translated(place):
                return os.listdir(place)
        except NotFoundError:
            return []

    def beginning(self, start: str) -> Iterator[str]:
        """See `Store.beginning`."""
        directory, _, name = start.rpartition("/")
        for file_name in [other for other in self.names(directory) if other.startswith(name)]:
            path = f"{directory}/{file_name}"
            if os.path.isdir(self._place(path)):
                yield from (entry.path for entry in self.walk(path))
            else:
                yield path

    def exists(self, path: str) -> bool:
        """See `Store.exists`."""
        return os.path.isfile(self._place(path))

    def stamp(self, path: str) -> str | None:
        """See `Store.stamp`."""
        place = self._place(path)
        try:
            with translated(place):
                status = os.stat(place)
        except NotFoundError:
            return None
        return f"{status.st_ino} {status.st_mtime_ns} {status.st_size}"

    def folders(self) -> list[str] | None:
        """See `Store.folders`."""
        try:
            with translated(self.uri), os.scandir(self._root) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except NotFoundError:
            return None

    def create(self, path: str, *, late: bool = False) -> Sink:
        """See `Store.create`."""
        return local_write.LocalSink(self._own_place(path), fsync=self._fsync, late=late)

    def put(self, path: str, data: Buffer, *, safe: bool = True) -> None:
        """See `Store.put`."""
        place = self._own_place(path)
        if safe or not local_write.put_in_place(place, data):
            local_write.put(place, data, fsync=self._fsync and safe)

    def put_if_absent(
        self, path: str, data: Buffer, beside: Mapping[str, Buffer] | None = None, *, late: bool = False
    ) -> None:
        """See `Store.put_if_absent`."""
        others = {self._own_place(other): content for other, content in (beside or {}).items()}
        local_write.put_if_absent(self._own_place(path), data, others, self._roots, fsync=self._fsync, late=late)

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        for path in paths:
            place = self._own_place(path)
            local_write.delete(place, self._root_of(place) or self._root, fsync=self._fsync)

    def walk(self, directory: str = "") -> Iterator[Entry]:
        """See `Store.walk`."""
        top = self._place(directory) if directory.strip("/") else self._root
        place = directory.strip("/")
        with translated(top):
            for folder, _, names in os.walk(top, onerror=_raise_unless_gone):
                inner = os.path.relpath(folder, top).replace(os.sep, "/")
                prefix = "/".join(part for part in (place, "" if inner == "." else inner) if part)
                for name in names:
                    try:
                        status = os.lstat(os.path.join(folder, name))
                    except FileNotFoundError:
                        continue
                    modified = datetime.fromtimestamp(status.st_mtime, UTC)
                    yield Entry(f"{prefix}/{name}" if prefix else name, status.st_size, modified)

    def copy(self, source: str, path: str) -> None:
        """See `Store.copy`."""
        start, end = self._place(source), self._own_place(path)
        with translated(start):
            opened = open_regular(start)
        with opened:
            local_write.copy(opened, end, fsync=self._fsync)

    def sync(self) -> None:
        """See `Store.sync`."""
        if self._fsync:
            with local_write.translated(self._root):
                unflushed.flush(self._roots)

    def _place(self, path: str) -> str:
        if "\0" in path or not path:
            raise leaves_root(path, self.uri)
        place = self._plain_place(path) or os.path.realpath(os.path.join(self._root, path))
        if self._root_of(place) is None:
            raise leaves_root(path, self.uri)
        return place

    def _plain_place(self, path: str) -> str | None:
        """Return the `realpath` of a path below the root without links. Returns None if it may contain links.

        `realpath` would also check the folders above the root, which takes longer than opening a small file.
        """
        parts = path.split("/")
        if os.sep != "/" or not {"", ".", ".."}.isdisjoint(parts):
            return None
        place = self._root.rstrip(os.sep)
        try:
            for part in parts:
                place = f"{place}/{part}"
                if stat.S_ISLNK(os.lstat(place).st_mode):
                    return None
        except OSError:  # the path does not exist, or a name is too long
            return None
        return place

    def _own_place(self, path: str) -> str:
        """Return the absolute path to replace or delete. For a link, this is the link itself, not its target."""
        folder, name = os.path.split(os.path.join(self._root, path)) if path and "\0" not in path else ("", "")
        inner = os.path.dirname(path)
        above = (self._plain_place(inner) if inner else self._root) or os.path.realpath(folder)
        place = os.path.join(above, name)
        if name in ("", ".", "..") or self._root_of(place) is None:
            raise leaves_root(path, self.uri)
        return place

    def _root_of(self, place: str) -> str | None:
        for root in self._roots:
            if place.startswith(root.rstrip(os.sep) + os.sep) and place != root:  # the path "/" ends with a separator
                return root
        return None


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
