"""Reads objects through a cache folder."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from lance_duck.arguments import byte_count, number_or_text
from lance_duck.cache import LruCache
from lance_duck.checksums.digests import digest
from lance_duck.errors import InvalidInputError, StoreError
from lance_duck.redact import shown
from lance_duck.store.client import CACHE_OPTION, CACHE_SIZE_OPTION
from lance_duck.store.disk_cache.blocks import BLOCK, PAGES, ObjectVersion
from lance_duck.store.disk_cache.claim import claim
from lance_duck.store.disk_cache.folder import CacheFolder
from lance_duck.store.disk_cache.plan import ReadPieces, pages_of, ranges_to_fetch, split
from lance_duck.store.disk_cache.room import Room
from lance_duck.store.disk_cache.waiting import WaitingBlocks
from lance_duck.store.request import Bytes
from lance_duck.telemetry.metrics import BYTES_READ, CACHE_HITS, CACHE_MISSES

DEFAULT_SIZE: Final = 20 * 10**9
"""Maximum size of a cache in bytes, unless the option says otherwise."""

_LOG: Final = logging.getLogger(__name__)
_PAUSE: Final = 60.0
"""Seconds without the cache after an error of the disk."""
_LARGEST_SHARE: Final = 10
"""A scan of an object larger than a tenth of the limit is not stored. It would evict everything else."""
_KNOWN_OBJECTS: Final = 1 << 16
_UNASKED_BYTES: Final = 64 << 20
"""Maximum size of a read of an object whose size the store has not confirmed."""


class FetchedPart(NamedTuple):
    """A response of the store.

    Attributes:
        data: The bytes.
        size: Size of the whole object in bytes.
        tag: The object's e-tag, or another text that changes with its content.
    """

    data: Bytes
    size: int
    tag: str


class ObjectReader(Protocol):
    """Requests for one object. Both methods raise the errors of `ByteSource.read`."""

    def ask(self) -> tuple[int, str]:
        """Return size and tag of the object."""

    def fetch(self, runs: Sequence[tuple[int, int]]) -> list[FetchedPart]:
        """Return the bytes of each range, given as (offset, size)."""


class DiskCache:
    """A cache folder as one process uses it.

    Args:
        root: Absolute path of the folder.
        limit: Maximum size of all blocks in bytes.

    Raises:
        InvalidInputError: The folder belongs to somebody else, or to other files.
    """

    def __init__(self, root: str, limit: int) -> None:
        self.folder = CacheFolder(root)
        self.room = Room(self.folder, limit)
        self._known: LruCache[ObjectVersion] = LruCache(_KNOWN_OBJECTS)
        self._waiting = WaitingBlocks(self._write)
        self._off_until: float | None = None
        try:
            claim(root)
        except OSError as error:
            self.turn_off(error)

    def is_on(self) -> bool:
        """Return whether the cache can be used. After a pause, claims the folder again: it may have been deleted."""
        off_until = self._off_until  # another thread may turn the cache on
        if off_until is None:
            return True
        if time.monotonic() < off_until:
            return False
        try:
            claim(self.folder.root)
        except (OSError, InvalidInputError) as error:
            self.turn_off(error)
            return False
        self._off_until = None
        return True

    def turn_off(self, error: Exception) -> None:
        """Stop using the cache for a minute, because the disk failed. Another thread may have done so."""
        off_until, now = self._off_until, time.monotonic()
        self._off_until = now + _PAUSE
        if off_until is None or off_until <= now:
            _LOG.warning("the cache %s is off for a minute: %s", shown(self.folder.root), shown(error))

    def known(self, name: bytes, size: int | None = None) -> ObjectVersion | None:
        """Return what the store said about an object in this process. None if it was not asked, or the size differs."""
        version = self._known.find(name)
        return version if version is not None and size in (None, version.size) else None

    def learn(self, name: bytes, size: int, tag: str) -> ObjectVersion:
        """Remember what the store said about an object, and return it."""
        version = ObjectVersion(name, size, digest(tag.encode()))
        if self._known.find(name) != version:
            self._known.drop(name)
        return self._known.put(name, version)

    def forget(self, name: bytes) -> None:
        """Ask the store again before the object is next read."""
        self._known.drop(name)

    def find(self, version: ObjectVersion, wanted: set[int]) -> dict[int, Bytes]:
        """Return the wanted pages of an object that are in the cache."""
        found: dict[int, Bytes] = {}
        try:
            for number in sorted({page // PAGES for page in wanted}):
                waiting = self._waiting.find(version, number)
                found |= {page: data for page, data in waiting.items() if page in wanted}
                if any(page // PAGES == number for page in wanted - found.keys()):
                    found |= self.folder.find(version, number, wanted - found.keys())
        except OSError as error:
            self.turn_off(error)
        BYTES_READ.add("disk_cache", by=sum(map(len, found.values())))
        return found

    def store(self, version: ObjectVersion, offset: int, data: Bytes) -> None:
        """Store a range that begins and ends with a page, soon and if there is room."""
        if version.size * _LARGEST_SHARE > self.room.limit and len(data) >= BLOCK:
            return
        blocks: dict[int, dict[int, Bytes]] = {}
        for page, piece in split(offset, data).items():
            blocks.setdefault(page // PAGES, {})[page] = piece
        for number, pages in blocks.items():
            self._waiting.add(version, number, pages)

    def _write(self, version: ObjectVersion, number: int, pages: Mapping[int, Bytes]) -> None:
        try:
            if self.is_on():
                self.folder.add(version, number, pages, self.room.reserve)
        except OSError as error:
            self.turn_off(error)


class CachedObject:
    """An object that is read through the cache.

    Args:
        cache: The cache.
        name: Name of the object in the cache.
        reader: Sends the requests for the object.
    """

    def __init__(self, cache: DiskCache, name: bytes, reader: ObjectReader) -> None:
        self._cache = cache
        self._name = name
        self._reader = reader
        self._is_mute = False

    def learn(self, size: int, tag: str) -> None:
        """Remember what the store said about the object."""
        self._cache.learn(self._name, size, tag)

    def read(self, size: int, starts: Sequence[int], lengths: Sequence[int]) -> list[Bytes] | None:
        """Return the bytes of ranges, from the cache or from the store. Raises the errors of `ByteSource.read`.

        Args:
            size: Expected size of the object in bytes.
            starts: Start of each range, in any order. There is at least one range.
            lengths: Number of bytes of each range, at least one.

        Returns:
            The bytes. None if the cache is off, or the object is not the expected one.
        """
        cache = self._cache
        if not cache.is_on():
            return None
        version = cache.known(self._name, size)
        if version is None and sum(lengths) > _UNASKED_BYTES and (version := self._asked(size)) is None:
            return None
        wanted = pages_of(starts, lengths)
        if version is None and self._may_have(wanted) and (version := self._asked(size)) is None:
            return None
        found = cache.find(version, wanted) if version is not None else {}
        _count_uses(wanted, found.keys())
        runs = ranges_to_fetch(wanted - found.keys(), size)
        parts = self._reader.fetch(runs) if runs else []
        for (_, length), part in zip(runs, parts, strict=True):
            version = version or cache.learn(self._name, part.size, part.tag)
            if len(part.data) != length or (part.size, digest(part.tag.encode())) != (size, version.tag):
                cache.forget(self._name)
                return None
        if version is not None:
            for (offset, _), part in zip(runs, parts, strict=True):
                cache.store(version, offset, part.data)
        pieces = ReadPieces(found, {offset: part.data for (offset, _), part in zip(runs, parts, strict=True)})
        return [pieces.cut(start, length) for start, length in zip(starts, lengths, strict=True)]

    def whole(self) -> bytes | None:
        """Return the whole object, if its size is known in this process. Otherwise asking would cost a request."""
        version = self._cache.known(self._name)
        if version is None or not version.size:
            return None
        try:
            pieces = self.read(version.size, [0], [version.size])
        except StoreError:  # the object may be shorter now
            self._cache.forget(self._name)
            return None
        return None if pieces is None else pieces[0].tobytes()

    def store(self, part: FetchedPart) -> None:
        """Store a whole object."""
        if len(part.data) == part.size:
            self._cache.store(self._cache.learn(self._name, part.size, part.tag), 0, part.data)

    def _asked(self, size: int) -> ObjectVersion | None:
        """Ask the store about the object. Returns None if its size differs, or if the store does not answer."""
        if self._is_mute:
            return None
        try:
            version = self._cache.learn(self._name, *self._reader.ask())
        except StoreError:
            self._is_mute = True
            return None
        return version if version.size == size else None

    def _may_have(self, pages: set[int]) -> bool:
        """Return whether the cache has blocks with some of these pages, perhaps of an object that was replaced."""
        try:
            return self._cache.folder.has_any(self._name, {page // PAGES for page in pages})
        except OSError as error:
            self._cache.turn_off(error)
            return False


def _count_uses(wanted: set[int], found: Set[int]) -> None:
    """Count the blocks whose wanted pages were all found, and the other blocks."""
    misses = {page // PAGES for page in wanted - found}
    CACHE_MISSES.add("disk", by=len(misses))
    CACHE_HITS.add("disk", by=len({page // PAGES for page in wanted} - misses))


@dataclass(frozen=True)
class BucketCache:
    """A cache for the immutable objects of one bucket.

    Attributes:
        cache: The cache.
        bucket: Identifies the bucket: its URI, and the endpoint of the service.
        is_immutable: Returns whether the content of a path, relative to the root of the store, never changes.
    """

    cache: DiskCache
    bucket: str
    is_immutable: Callable[[str], bool]

    def object(self, path: str, key: str, reader: ObjectReader) -> CachedObject | None:
        """Return an object that is read through the cache, or None if it is not immutable.

        Args:
            path: Path relative to the root of the store.
            key: Key in the bucket.
            reader: Sends the requests for the object.
        """
        if not self.is_immutable(path):
            return None
        name = hashlib.sha256(f"{self.bucket}\0{key}".encode()).digest()
        return CachedObject(self.cache, name, reader)


def open_cache(options: Mapping[str, str]) -> DiskCache | None:
    """Return the cache that storage options name, or None if they name none.

    Args:
        options: Storage options, with names in lower case.

    Raises:
        InvalidInputError: An option is wrong, or the folder belongs to somebody else or to other files.
    """
    folder, size = options.get(CACHE_OPTION), options.get(CACHE_SIZE_OPTION)
    limit = DEFAULT_SIZE if size is None else byte_count(number_or_text(size), f"storage option {CACHE_SIZE_OPTION}")
    if folder is None:
        if size is not None:
            raise InvalidInputError(
                f"storage option {CACHE_SIZE_OPTION} needs a folder",
                remedy=f"also set the storage option {CACHE_OPTION}",
            )
        return None
    if not folder:
        raise InvalidInputError(f"storage option {CACHE_OPTION}", expected="a folder", found="an empty string")
    return _opened(os.path.abspath(os.path.expanduser(folder)), limit)


@lru_cache(maxsize=64)
def _opened(root: str, limit: int) -> DiskCache:
    return DiskCache(root, limit)
