"""Objects of S3, Google Cloud Storage, Azure, web servers, and the memory of this process.

Ranges less than `COALESCED_GAP` bytes apart become one request, and requests run concurrently. A large number of
requests is divided among several obstore calls. obstore retries requests that fail temporarily. Tables in the same
bucket with the same options share one client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import obstore
from numpy.typing import NDArray
from obstore.store import MemoryStore

from lance_duck.errors import CorruptError, NotFoundError, StoreError, UnsupportedError
from lance_duck.store.base import Entry, check_range, normal_path
from lance_duck.store.client import call
from lance_duck.store.costs import (
    CALL_REQUESTS,
    COALESCED_GAP,
    PART_BYTES,
    PARTS_AT_ONCE,
    REQUESTS_AT_ONCE,
    TAIL_BYTES,
)
from lance_duck.store.counted import count_bytes
from lance_duck.store.external import ExternalManifestStore
from lance_duck.store.request import Bytes
from lance_duck.store.sink import Buffer, Sink, copy_bytes
from lance_duck.store.tagged import TaggedRequests
from lance_duck.telemetry.metrics import BYTES_READ

if TYPE_CHECKING:
    from lance_duck.store import disk_cache

MOST_IN_ONE_DELETE = 1000
LARGEST_COPY = 4 << 30
_PAGE = 1000  # objects per request of a listing

_EMPTY = np.empty(0, np.uint8)
_EMPTY.setflags(write=False)


@dataclass(frozen=True, eq=False)
class _JoinedRequests:
    """The requests into which ranges were joined.

    Attributes:
        starts: First byte of each request, ascending.
        lengths: Number of bytes of each request.
        request_of: int64, index of each range's request.
    """

    starts: list[int]
    lengths: list[int]
    request_of: NDArray[np.int64]

    @classmethod
    def of(cls, starts: Sequence[int], lengths: Sequence[int], gap: int = COALESCED_GAP) -> _JoinedRequests:
        """Join ranges that lie close together.

        Args:
            starts: Start of each range, in any order. There is at least one range, and ranges may overlap.
            lengths: Number of bytes of each range.
            gap: Maximum gap between two ranges to be joined, in bytes.
        """
        first = np.array(starts, np.int64)
        order = np.argsort(first, kind="stable")
        ascending = first[order]
        ends = np.maximum.accumulate(ascending + np.array(lengths, np.int64)[order])
        begins = np.concatenate([[True], ascending[1:] > ends[:-1] + gap])
        edges = np.flatnonzero(begins)
        request_of = np.empty(len(first), np.int64)
        request_of[order] = np.cumsum(begins) - 1
        lasts = ends[np.concatenate([edges[1:], [len(first)]]) - 1]
        return cls(ascending[edges].tolist(), (lasts - ascending[edges]).tolist(), request_of)

    def pieces(self, spans: Sequence[Bytes], starts: Sequence[int], lengths: Sequence[int]) -> list[Bytes]:
        """Return the bytes of the ranges, cut from the fetched requests."""
        return [
            spans[number][start - self.starts[number] : start - self.starts[number] + length]
            for number, start, length in zip(self.request_of.tolist(), starts, lengths, strict=True)
        ]


class ObjectFile:
    """A `ByteSource` over one object."""

    remote = True

    def __init__(
        self, client: Any, key: str, path: str, size: int | None, cached: disk_cache.CachedObject | None = None
    ) -> None:
        self.path = path
        self._client = client
        self._key = key
        self._cached = cached
        if size is None:
            size, tag = TaggedRequests(client, key, path).ask()
            if cached is not None:
                cached.learn(size, tag)
        self.size = size
        self._tail: tuple[int, Bytes] = self.size, _EMPTY

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return the bytes of each (offset, size), with as few concurrent requests as possible.

        The end of the object contains its metadata, and is kept once it has been read.
        """
        for offset, length in ranges:
            check_range(self.path, self.size, offset, length)
        start, tail = self._tail
        filled = [r for r in ranges if r[1] and r[0] < start]
        fetched = iter(self._fetch([r[0] for r in filled], [r[1] for r in filled]) if filled else ())
        if len(filled) < len(ranges):
            BYTES_READ.add("memory", by=sum(length for offset, length in ranges if offset >= start))
        pieces = [
            _EMPTY
            if not length
            else next(fetched)
            if offset < start
            else tail[offset - start : offset - start + length]
            for offset, length in ranges
        ]
        for (offset, length), data in zip(ranges, pieces, strict=True):
            if offset + length == self.size and offset < self._tail[0] and length <= TAIL_BYTES:
                self._tail = offset, data
        return pieces

    def _fetch(self, starts: list[int], lengths: list[int]) -> list[Bytes]:
        joined = _JoinedRequests.of(starts, lengths)
        try:
            if self._cached is not None:
                pieces = self._cached.read(self.size, starts, lengths)
                if pieces is not None:
                    return pieces
            spans = self._spans(joined)
        except StoreError:
            self._check_size()
            raise
        if any(len(data) != length for data, length in zip(spans, joined.lengths, strict=True)):
            self._check_size()
            raise StoreError("the store returned fewer bytes than requested", where=self.path)
        return joined.pieces(spans, starts, lengths)

    def _spans(self, joined: _JoinedRequests) -> list[Bytes]:
        """Run up to `REQUESTS_AT_ONCE` calls concurrently, and return the bytes of each request."""

        def get(first: int) -> list[Bytes]:
            starts, lengths = (each[first : first + CALL_REQUESTS] for each in (joined.starts, joined.lengths))

            def fetch() -> list[Any]:
                return list(obstore.get_ranges(self._client, self._key, starts=starts, lengths=lengths, coalesce=0))

            spans = [np.frombuffer(data, np.uint8) for data in call("get", self.path, fetch, len(starts))]
            count_bytes("get", self.path, sum(map(len, spans)))
            return spans

        calls = range(0, len(joined.starts), CALL_REQUESTS)
        if len(calls) == 1:
            return get(0)
        with ThreadPoolExecutor(min(len(calls), REQUESTS_AT_ONCE), thread_name_prefix="lance_duck-get") as pool:
            return [span for spans in pool.map(get, calls) for span in spans]

    def _check_size(self) -> None:
        size = call("head", self.path, lambda: obstore.head(self._client, self._key)["size"])
        if size < self.size:
            raise CorruptError("the file is truncated", where=self.path, expected=f"{self.size} bytes", found=size)


def store_in_memory() -> ObjectStore:
    """Return a new, empty in-memory store. It exists as long as it is referenced."""
    return ObjectStore("memory:", MemoryStore(), "", checksums=False)


class ObjectStore:
    """Objects of one bucket whose keys begin with a prefix.

    Args:
        uri: URI of the root, for messages and to reopen the store.
        client: The bucket.
        prefix: Key of the root, without leading or trailing slashes. May be empty.
        can_list: Whether the service lists keys.
        hub_folders: Returns the folder names below the root. Only for the Hugging Face Hub.
        external: See `Store.external`.
        checksums: See `Store.checksums`.
        cache: A cache for immutable objects of the bucket.
    """

    def __init__(
        self,
        uri: str,
        client: Any,
        prefix: str,
        *,
        can_list: bool = True,
        hub_folders: Callable[[], list[str] | None] | None = None,
        external: ExternalManifestStore | None = None,
        checksums: bool = True,
        cache: disk_cache.BucketCache | None = None,
    ) -> None:
        self.uri = uri
        self.can_list = can_list
        self.external = external
        self.checksums = checksums
        self._client = client
        self._prefix = prefix
        self._hub_folders = hub_folders
        self._cache = cache

    def get(self, path: str) -> bytes:
        """See `Store.get`."""
        key = self._key(path)
        where = self._where(path)
        cached = self._cached(path, key)
        if cached is not None:
            return self._get_cached(cached, key, where)
        data = call("get", where, lambda: bytes(obstore.get(self._client, key).bytes()))
        count_bytes("get", where, len(data))
        return data

    def open(self, path: str, size: int | None = None) -> ObjectFile:
        """See `Store.open`."""
        key = self._key(path)
        return ObjectFile(self._client, key, self._where(path), size, self._cached(path, key))

    def entries(self, directory: str) -> Iterator[Entry]:
        """See `Store.entries`."""
        key = self._key(directory) + "/"
        cut = len(key) - len(directory.strip("/")) - 1
        for item in self._listed(key, self._where(directory)):
            if "/" not in item["path"][len(key) :]:
                yield _entry(item, cut)

    def names(self, directory: str) -> Iterator[str]:
        """See `Store.names`."""
        for entry in self.entries(directory):
            yield entry.path.rpartition("/")[2]

    def names_at_once(self, directory: str) -> list[str] | None:
        """See `Store.names_at_once`."""
        return None

    def beginning(self, start: str) -> Iterator[str]:
        """See `Store.beginning`. Keys are listed in order, so the listing starts at the prefix."""
        directory, _, name = start.rpartition("/")
        key = self._key(directory) + "/"
        cut = len(self._prefix) + 1 if self._prefix else 0
        for item in self._listed(key, self._where(start), after=key + name):
            if not item["path"].startswith(key + name):
                return
            yield item["path"][cut:]

    def exists(self, path: str) -> bool:
        """See `Store.exists`."""
        key = self._key(path)
        try:
            call("head", self._where(path), lambda: obstore.head(self._client, key))
        except NotFoundError:
            return False
        return True

    def stamp(self, path: str) -> str | None:
        """See `Store.stamp`."""
        key = self._key(path)
        try:
            metadata = call("head", self._where(path), lambda: obstore.head(self._client, key))
        except NotFoundError:
            return None
        return f"{metadata['e_tag']} {metadata['last_modified']} {metadata['size']}"

    def folders(self) -> list[str] | None:
        """See `Store.folders`. A bucket's root exists even if it is empty."""
        if self._hub_folders is not None:
            return self._hub_folders()
        listing = call("list", self.uri, lambda: obstore.list_with_delimiter(self._client, self._prefix or None))
        if self._prefix and not listing["common_prefixes"] and not listing["objects"]:
            return None
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in listing["common_prefixes"])

    def create(self, path: str, *, late: bool = False) -> Sink:
        """See `Store.create`. Uploads the file in parts. At most four parts wait in memory.

        An aborted upload never appears. If the process is killed, a service may keep the parts until the bucket's
        lifecycle rule removes incomplete uploads.
        """
        key = self._writable(path)
        return _ObjectSink(self._client, key, self._where(path))

    def put(self, path: str, data: Buffer, *, safe: bool = True) -> None:
        """See `Store.put`."""
        key = self._writable(path)
        call("put", self._where(path), lambda: obstore.put(self._client, key, bytes(data)))
        count_bytes("put", self._where(path), memoryview(data).nbytes)

    def put_if_absent(
        self, path: str, data: Buffer, beside: Mapping[str, Buffer] | None = None, *, late: bool = False
    ) -> None:
        """See `Store.put_if_absent`: a conditional put."""
        key = self._writable(path)
        for other, content in (beside or {}).items():
            self.put(other, content)
        call(
            "put",
            self._where(path),
            lambda: obstore.put(self._client, key, bytes(data), mode="create", use_multipart=False),
        )
        count_bytes("put", self._where(path), memoryview(data).nbytes)

    def delete(self, paths: Iterable[str]) -> None:
        """See `Store.delete`."""
        keys = [self._writable(path) for path in paths]
        for at in range(0, len(keys), MOST_IN_ONE_DELETE):
            self._delete(keys[at : at + MOST_IN_ONE_DELETE])

    def walk(self, directory: str = "") -> Iterator[Entry]:
        """See `Store.walk`."""
        key = self._key(directory) + "/" if directory.strip("/") else self._prefix and self._prefix + "/"
        cut = len(self._prefix) + 1 if self._prefix else 0
        for item in self._listed(key, self._where(directory)):
            yield _entry(item, cut)

    def copy(self, source: str, path: str) -> None:
        """See `Store.copy`. Copies within the service, unless the object is too large."""
        start, end = self._key(source), self._writable(path)
        size = call("head", self._where(source), lambda: obstore.head(self._client, start)["size"])
        if size <= LARGEST_COPY:
            call("copy", self._where(source), lambda: obstore.copy(self._client, start, end))
            return
        copy_bytes(self.open(source, size), self.create(path))

    def sync(self) -> None:
        """See `Store.sync`: objects that a service has acknowledged are safe."""

    def _cached(self, path: str, key: str) -> disk_cache.CachedObject | None:
        if self._cache is None:
            return None
        return self._cache.object(path, key, TaggedRequests(self._client, key, self._where(path)))

    def _get_cached(self, cached: disk_cache.CachedObject, key: str, where: str) -> bytes:
        data = cached.whole()
        if data is not None:
            return data
        part = TaggedRequests(self._client, key, where).whole()
        cached.store(part)
        return part.data.tobytes()

    def _delete(self, keys: list[str]) -> None:
        try:
            call("delete", self.uri, lambda: obstore.delete(self._client, keys))
        except NotFoundError:  # some services fail at the first missing key
            if len(keys) > 1:
                for key in keys:
                    self._delete([key])

    def _listed(self, key: str, where: str, after: str | None = None) -> Iterator[Any]:
        client = self._client
        pages = call(
            "list",
            where,
            lambda: iter(obstore.list(client, key or None, offset=after, chunk_size=_PAGE)),
            requests=0,
        )
        requests = 1
        while (page := call("list", where, lambda: next(pages, None), requests)) is not None:
            yield from page
            requests = int(len(page) == _PAGE)

    def _writable(self, path: str) -> str:
        if not self.can_list:
            raise UnsupportedError(
                "a web server is read-only", where=self._where(path), remedy="write to a local disk or an object store"
            )
        return self._key(path)

    def _key(self, path: str) -> str:
        normal = normal_path(path, self.uri)
        return f"{self._prefix}/{normal}" if self._prefix else normal

    def _where(self, path: str) -> str:
        return f"{self.uri}/{path}"


def _entry(item: Any, cut: int) -> Entry:
    modified: datetime = item["last_modified"]
    return Entry(item["path"][cut:], item["size"], modified.astimezone(UTC))


class _ObjectSink(Sink):
    """See `Sink`.

    Args:
        client: The bucket.
        key: Key of the object.
        path: URI of the object, for messages.
    """

    def __init__(self, client: Any, key: str, path: str) -> None:
        super().__init__(path)
        self._size = 0
        self._upload = call(
            "put",
            path,
            lambda: obstore.open_writer(client, key, buffer_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE),
            requests=0,
        )

    def _write(self, data: memoryview) -> None:
        for at in range(0, len(data), PART_BYTES):  # obstore would accept a large buffer without waiting for space
            piece = data[at : at + PART_BYTES]
            call("put", self.path, lambda piece=piece: self._upload.write(piece), requests=0)  # type: ignore[misc]
        self._size += len(data)

    def _close(self) -> None:
        """Finish the upload: a single request, or one request for each part, one to begin and one to end."""
        parts = -(-self._size // PART_BYTES)
        call("put", self.path, self._upload.close, 1 if parts <= 1 else parts + 2)
        count_bytes("put", self.path, self._size)

    def _abort(self) -> None:
        """Let the service delete the uploaded parts. Otherwise, they would remain and incur costs."""
        with suppress(StoreError):  # obstore aborts an upload if its block raises an error, and closes it otherwise
            call("put", self.path, lambda: self._upload.__exit__(StoreError, None, None), requests=0)
