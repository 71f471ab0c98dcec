"""The files of a cache folder.

    CACHEDIR.TAG                                      see `claim`
    evict.lock                                        locked by the process that evicts blocks
    v2/{2 hex digits}/{62 hex digits}-{number}.blk    a block: see `blocks`; the digits are the object's name
    …/{…}.blk#{digits}                                a block that is being written, or remains of a killed process

Files appear by renaming, so that a file is always whole. They are not flushed: after a power failure, checksums reveal
files whose bytes are lost. Two writers of one block replace each other's file, and pages may be lost. Directories are
never removed, because that takes milliseconds.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from typing import Final, NamedTuple

from lance_duck.store.base import is_temporary, temporary_name
from lance_duck.store.disk_cache.blocks import PAGES, ObjectVersion, encode_block, read_block
from lance_duck.store.disk_cache.claim import is_cache
from lance_duck.store.request import Bytes

VERSION: Final = "v2"
SUFFIX: Final = ".blk"
_FRESH: Final = 3600.0
"""Seconds during which a block that is read again keeps its time. This saves system calls."""


class BlockFile(NamedTuple):
    """A file of the cache.

    Attributes:
        path: Absolute path.
        size: Size in bytes.
        used: When the file was last used, within an hour, as seconds since 1970.
    """

    path: str
    size: int
    used: float


class CacheFolder:
    """Blocks in a folder. All methods raise OSError if the disk fails.

    Args:
        root: Absolute path of a claimed folder.
    """

    def __init__(self, root: str) -> None:
        self.root = root

    def has_any(self, name: bytes, numbers: Iterable[int]) -> bool:
        """Return whether there are some of these blocks of an object, perhaps outdated ones."""
        return any(os.path.exists(self._path(name, number)) for number in numbers)

    def find(self, version: ObjectVersion, number: int, wanted: Container[int] | None) -> dict[int, Bytes]:
        """Return the wanted pages of a block that are in the cache. None wants all pages.

        A damaged or outdated block is deleted.
        """
        path = self._path(version.name, number)
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                pages = read_block(file, status.st_size, version, number, wanted)
        except FileNotFoundError:
            return {}
        if pages is None:
            remove(path)
            return {}
        if pages and time.time() - status.st_mtime > _FRESH:
            with suppress(FileNotFoundError):
                os.utime(path)
        return pages

    def add(
        self,
        version: ObjectVersion,
        number: int,
        pages: Mapping[int, Bytes],
        reserve: Callable[[int], AbstractContextManager[bool]],
    ) -> None:
        """Store pages of a block, in addition to the pages that it has.

        Args:
            version: The object.
            number: Number of the block.
            pages: The pages, by number.
            reserve: Reserves room for a file of this size, and returns whether there is room.
        """
        path = self._path(version.name, number)
        present = {} if len(pages) == PAGES else self.find(version, number, None)
        data = encode_block(version, number, present | dict(pages))
        with reserve(len(data)) as has_room:
            if has_room:
                if not os.path.isdir(os.path.dirname(path)):
                    self._make_directory(os.path.dirname(path))
                _write_file(path, data.data)

    def files(self) -> Iterator[BlockFile]:
        """Yield all blocks and temporary files, also of other versions of this package."""
        for version in _entries(self.root):
            if version.name.startswith("v") and version.is_dir(follow_symlinks=False):
                for directory in _entries(version.path):
                    yield from _block_files(directory.path)

    def _path(self, name: bytes, number: int) -> str:
        digits = name.hex()
        return os.path.join(self.root, VERSION, digits[:2], f"{digits[2:]}-{number}{SUFFIX}")

    def _make_directory(self, path: str) -> None:
        """Create a directory for blocks, but not the folder itself: it would be neither private nor marked."""
        if not is_cache(self.root):
            raise OSError(errno.ENOENT, "the folder is no longer a cache", self.root)
        os.makedirs(path, 0o700, exist_ok=True)


def is_block(path: str) -> bool:
    """Return whether a file is a block, not a temporary file."""
    return not is_temporary(path)


def remove(path: str) -> None:
    """Delete a file. A missing file is ignored."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def _block_files(directory: str) -> Iterator[BlockFile]:
    for entry in _entries(directory):
        if SUFFIX in entry.name:
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                yield BlockFile(entry.path, status.st_size, status.st_mtime)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write_file(path: str, data: memoryview) -> None:
    temporary = temporary_name(path)
    try:
        with open(temporary, "xb", buffering=0) as file:
            while data:
                data = data[os.write(file.fileno(), data) :]
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
