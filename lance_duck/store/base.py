"""The interface of stores. The package reads and writes all files through it.

{name}#{number}    a file that is being written on a local disk; it remains if the process is killed
.tmp…              a temporary file of other implementations
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
        size: Size in bytes.
        modified: Time of the last change, UTC.
    """

    path: str
    size: int
    modified: datetime


class Store(Protocol):
    """Files below one root. Paths are relative to the root, with "/" between names.

    Every method with a path raises InvalidInputError if the path is outside the root and all other allowed roots. Every
    method raises StoreError if the disk or the service fails.
    """

    @property
    def uri(self) -> str:
        """The root in a form that can be opened again: an absolute path, or a URI without a trailing slash."""

    @property
    def external(self) -> ExternalManifestStore | None:
        """The external manifest store in which versions are claimed, if the store itself lacks put-if-absent."""

    @property
    def checksums(self) -> bool:
        """Whether new files get checksums, and whether data files and index files are verified.

        Small files are always verified.
        """

    @property
    def can_list(self) -> bool:
        """Whether `entries` and `names` work. Plain web servers do not support them."""

    def get(self, path: str) -> bytes:
        """Return the whole file. Raises NotFoundError."""

    def open(self, path: str, size: int | None = None) -> ByteSource:
        """Open a file for range reads.

        Args:
            path: The file.
            size: Size of the file in bytes, if known. The size saves a round trip on an object store, and is verified
                on a local disk.

        Raises:
            NotFoundError: The file does not exist. If `size` is given, an object store detects this on the first read.
            CorruptError: A local file has a different size.
        """

    def entries(self, directory: str) -> Iterator[Entry]:
        """Yield the files directly in a directory, by name. Yields nothing if the directory does not exist.

        Names are in lexical order. Object stores list them lazily, a thousand per request.
        """

    def names(self, directory: str) -> Iterator[str]:
        """Yield only the names of `entries`.

        This is faster if sizes require extra requests. On a local disk, the names include directories.
        """

    def names_at_once(self, directory: str) -> list[str] | None:
        """Return all names that `names` yields, in any order. Returns None if the store lists them page by page."""

    def beginning(self, start: str) -> Iterator[str]:
        """Yield the paths of all files with a path prefix, including temporary files, in any order.

        Object stores list only these files.

        Args:
            start: A directory, "/", and a non-empty name prefix.
        """

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""

    def stamp(self, path: str) -> str | None:
        """Return a string that changes if the file is replaced. Returns None if the file does not exist."""

    def folders(self) -> list[str] | None:
        """Return the sorted names of the directories directly below the root, or None if the root does not exist."""

    def create(self, path: str, *, late: bool = False) -> Sink:
        """Create a file. It appears atomically when the sink is closed, and replaces any existing file.

        Missing directories are created.

        Args:
            path: The file.
            late: Whether the file may become durable only with the next `sync` or `put_if_absent`. Use this for small
                files of a commit.

        Raises:
            UnsupportedError: The store is read-only.
        """

    def put(self, path: str, data: Buffer, *, safe: bool = True) -> None:
        """Write a small file atomically, replacing any existing file.

        Args:
            path: The file.
            data: The whole content.
            safe: Whether the file must survive a power failure. If False, the file may be empty afterwards.
        """

    def put_if_absent(
        self, path: str, data: Buffer, beside: Mapping[str, Buffer] | None = None, *, late: bool = False
    ) -> None:
        """Write a small file durably, if the path does not exist.

        If several writers try concurrently, one succeeds. All data that `sync` would flush becomes durable first.

        Args:
            path: The file.
            data: The whole content.
            beside: Contents of other small files, by path. They are written first, and remain even if this call fails.
            late: Whether the name may become durable later, with `sync`. The content is durable immediately.

        Raises:
            AlreadyExistsError: The name is taken. On an object store, this call itself may have taken it, if a response
                was lost and the request was repeated.
            StoreError: The write failed, or its outcome is unknown.
        """

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files. Missing files are ignored.

        On a local disk, directories that become empty are also deleted, except the root. After a power failure, the
        files may exist again, unless `sync` was called.
        """

    def walk(self, directory: str = "") -> Iterator[Entry]:
        """Yield all files below a directory ("" for the root), including temporary files.

        Links to directories are not followed. The order is arbitrary. Yields nothing if the directory does not exist.
        """

    def copy(self, source: str, path: str) -> None:
        """Copy a file within the store, replacing any existing file. Raises NotFoundError."""

    def sync(self) -> None:
        """Make the names of new and deleted files durable. Called before a commit refers to them."""


def temporary_name(path: str) -> str:
    """Return a temporary name next to `path`. Listings of other implementations skip it."""
    return f"{path}#{secrets.randbits(48)}"


def is_temporary(path: str) -> bool:
    """Return whether a path belongs to a temporary file of this or another implementation."""
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
    """Return the error for a path that leaves its root."""
    return InvalidInputError(
        "the path is outside the table's folder",
        where=repr(path),
        expected=f"a file below {root}",
        remedy="nothing was read",
    )


def check_range(where: str, size: int, offset: int, length: int) -> None:
    """Raise CorruptError for a range outside an object of `size` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise CorruptError(
            "read beyond the end",
            where=where,
            expected=f"a range inside {size} bytes",
            found=f"{length} bytes at {offset}",
            remedy="the file is truncated, or its metadata are damaged",
        )
