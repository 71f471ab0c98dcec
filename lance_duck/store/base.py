"""The interface of stores, through which the rest of the package reads and writes files.

{name}#{number}    a file that is being written on a local disk; a killed process leaves it behind
.tmp…              the same, by other implementations
"""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.store.external import ExternalManifestStore
from lance_duck.store.request import ByteSource
from lance_duck.store.sink import Buffer, Sink

_TEMPORARY = re.compile(r"#[0-9]+$|^\.tmp")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file below a directory.

    Attributes:
        path: Relative to the root of the store.
        size: Bytes.
        modified: Time of the last change, UTC.
    """

    path: str
    size: int
    modified: datetime


class Store(Protocol):
    """Files below one root; paths are relative to it, with "/" between names.

    Every method that takes a path raises InvalidInputError when it leaves the root (and no other allowed root holds
    it), and StoreError when the disk or the service fails.
    """

    @property
    def uri(self) -> str:
        """Root, as it can be opened again: an absolute path, or a URI without a slash at the end."""

    @property
    def external(self) -> ExternalManifestStore | None:
        """The external manifest store that claims versions, if the store itself lacks put-if-absent."""

    @property
    def checksums(self) -> bool:
        """Whether files get checksums, and data and index files are verified. Small files are always verified."""

    @property
    def can_list(self) -> bool:
        """Whether `entries` and `names` work; plain web servers cannot."""

    def get(self, path: str) -> bytes:
        """Return the whole file. Raises NotFoundError."""

    def open(self, path: str, size: int | None = None) -> ByteSource:
        """Open a file for range reads.

        Args:
            path: The file.
            size: Bytes of the file where the caller knows them; saves a round trip on an object store, checked on a
                local disk.

        Raises:
            NotFoundError: No such file (an object store whose size is given notices at the first read).
            CorruptError: The file is not of the given size.
        """

    def entries(self, directory: str) -> Iterator[Entry]:
        """Yield the files directly in a directory, by name. Yields nothing if the directory does not exist.

        Names come in lexical order, lazily on object stores, where a thousand cost one request.
        """

    def names(self, directory: str) -> Iterator[str]:
        """Yield only the names, which is cheaper if sizes cost extra. On a local disk, includes directory names."""

    def names_at_once(self, directory: str) -> list[str] | None:
        """Return all names that `names` yields, in any order. Returns None if the store lists them page by page."""

    def beginning(self, start: str) -> Iterator[str]:
        """Yield the paths of all files whose paths begin with some text, temporary ones too, in any order.

        Object stores list these files only.

        Args:
            start: A directory, "/", and the beginning of the names of files and directories in it; not empty.
        """

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""

    def stamp(self, path: str) -> str | None:
        """Return a string that changes if the file is replaced. Returns None if the file does not exist."""

    def folders(self) -> list[str] | None:
        """Return the sorted names of the directories directly below the root, or None if the root does not exist."""

    def create(self, path: str, *, late: bool = False) -> Sink:
        """Begin a file, which appears whole when the sink is closed, in place of one of that name.

        Directories are made as needed.

        Args:
            path: The file.
            late: Whether it may be safe only after `sync` or `put_if_absent`, as a small file of a commit is.

        Raises:
            UnsupportedError: The store is read-only.
        """

    def put(self, path: str, data: Buffer, *, safe: bool = True) -> None:
        """Write a small file, in place of one of that name; readers see the old one or the new one.

        Args:
            path: The file.
            data: The whole content.
            safe: Whether it must survive a power cut; else it may be empty after one.
        """

    def put_if_absent(
        self, path: str, data: Buffer, beside: Mapping[str, Buffer] | None = None, *, late: bool = False
    ) -> None:
        """Write a small file under a name that nobody has taken, safe on the disk when this returns.

        If several writers try concurrently, one succeeds. Everything that `sync` flushes is safe before that.

        Args:
            path: The file.
            data: The whole content.
            beside: Further small files, by path, which are put first and stay whether this one succeeds or not.
            late: Whether the name, and nothing else, may be safe only after `sync`.

        Raises:
            AlreadyExistsError: The name is taken; on an object store perhaps by this very call, when an answer was
                lost and the call repeated.
            StoreError: The write failed, or its outcome is not known.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files; missing ones are passed over.

        On a local disk directories that become empty go, too, but for the root. After a power cut the files may be
        there again, unless `sync` was called.
        """

    def walk(self, directory: str = "") -> Iterator[Entry]:
        """Yield all files below a directory ("" for the root), also temporary ones; none when it does not exist.

        Links to directories are not followed. Files come in any order.
        """

    def copy(self, source: str, path: str) -> None:
        """Copy a file within the store, in place of one of that name. Raises NotFoundError."""

    def sync(self) -> None:
        """Make the names of new and deleted files survive a power cut; called before a commit names them."""


def temporary_name(path: str) -> str:
    """Return a name next to `path` for a file that is being written. Listings of other implementations skip it."""
    return f"{path}#{secrets.randbits(48)}"


def is_temporary(path: str) -> bool:
    """Return whether a path is of a temporary file, which this or another implementation was still writing."""
    return _TEMPORARY.search(posixpath.basename(path)) is not None


def normal_path(path: str, where: str) -> str:
    """Return a relative path without empty or dot segments.

    Raises:
        InvalidInputError: The path is empty or absolute, leaves its root, or holds a NUL.
    """
    normal = posixpath.normpath(path) if path else ""
    if normal in ("", ".", "..") or normal.startswith(("/", "../")) or "\0" in normal:
        raise leaves_root(path, where)
    return normal


def leaves_root(path: str, root: str) -> InvalidInputError:
    """Return the error for a path that points out of its root."""
    return InvalidInputError(
        "the path is outside the table's folder",
        where=repr(path),
        expected=f"a file below {root}",
        remedy="nothing was read",
    )


def check_range(where: str, size: int, offset: int, length: int) -> None:
    """Refuse a range that is not inside an object of `size` bytes, with CorruptError."""
    if offset < 0 or length < 0 or offset + length > size:
        raise CorruptError(
            "read beyond the end",
            where=where,
            expected=f"a range inside {size} bytes",
            found=f"{length} bytes at {offset}",
            remedy="the file is truncated, or its metadata are damaged",
        )
