"""Objects of S3, Google Cloud Storage, Azure, web servers, and the memory of this process.

Ranges less than `COALESCE` bytes apart become one request, and requests run at once; the library retries what a service
refuses for a moment. Tables under one bucket and the same options share one client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import obstore
from obstore.exceptions import BaseError
from obstore.store import MemoryStore, from_url

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, NotFoundError, StoreError
from lance_duck.store.base import Entry, check_range, normal_path
from lance_duck.store.request import Bytes

COALESCE = 256 << 10
MEMORY = MemoryStore()

_T = TypeVar("_T")
_CLIENT_OPTIONS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "read_timeout",
    "root_certificate",
    "randomize_addresses",
    "timeout",
    "user_agent",
)
_RETRY_OPTIONS = ("client_max_retries", "client_retry_timeout")
_EMPTY = np.empty(0, np.uint8)
_EMPTY.setflags(write=False)


class ObjectFile:
    """A `ByteSource` over one object."""

    remote = True

    def __init__(self, client: Any, key: str, path: str, size: int | None) -> None:
        self.path = path
        self._client = client
        self._key = key
        self.size = _call(path, lambda: obstore.head(client, key)["size"]) if size is None else size

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """Return the bytes of each (offset, size), in as few concurrent requests as they need."""
        for offset, length in ranges:
            check_range(self.path, self.size, offset, length)
        filled = [r for r in ranges if r[1]]
        if not filled:
            return [_EMPTY] * len(ranges)
        fetched = iter(self._fetch([r[0] for r in filled], [r[1] for r in filled]))
        return [next(fetched) if length else _EMPTY for _, length in ranges]

    def _fetch(self, starts: list[int], lengths: list[int]) -> list[Bytes]:
        def fetch() -> list[Any]:
            return list(obstore.get_ranges(self._client, self._key, starts=starts, lengths=lengths, coalesce=COALESCE))

        try:
            found = [np.frombuffer(data, np.uint8) for data in _call(self.path, fetch)]
        except StoreError:
            self._check_size()
            raise
        if any(len(data) != length for data, length in zip(found, lengths, strict=True)):
            self._check_size()
            raise StoreError("the store sent fewer bytes than were asked for", where=self.path)
        return found

    def _check_size(self) -> None:
        size = _call(self.path, lambda: obstore.head(self._client, self._key)["size"])
        if size < self.size:
            raise CorruptError("file is cut short", where=self.path, expected=f"{self.size} bytes", found=size)


class ObjectStore:
    """Objects of one bucket whose keys begin with a prefix.

    Args:
        uri: Root, for messages and for opening it again.
        client: The bucket.
        prefix: Key of the root, without a slash at either end; may be empty.
        can_list: Whether the service lists keys.
    """

    def __init__(self, uri: str, client: Any, prefix: str, *, can_list: bool = True) -> None:
        self.uri = uri
        self.can_list = can_list
        self._client = client
        self._prefix = prefix

    def get(self, path: str) -> bytes:
        """See `Store.get`."""
        key = self._key(path)
        return _call(self._where(path), lambda: bytes(obstore.get(self._client, key).bytes()))

    def open(self, path: str, size: int | None = None) -> ObjectFile:
        """See `Store.open`."""
        return ObjectFile(self._client, self._key(path), self._where(path), size)

    def entries(self, directory: str) -> Iterator[Entry]:
        """See `Store.entries`."""
        key = self._key(directory) + "/"
        cut = len(key) - len(directory.strip("/")) - 1
        pages = _call(self._where(directory), lambda: iter(obstore.list(self._client, key, chunk_size=1000)))
        while (page := _call(self._where(directory), lambda: next(pages, None))) is not None:
            for found in page:
                if "/" not in found["path"][len(key) :]:
                    modified: datetime = found["last_modified"]
                    yield Entry(found["path"][cut:], found["size"], modified.astimezone(UTC))

    def names(self, directory: str) -> Iterator[str]:
        """See `Store.names`."""
        for entry in self.entries(directory):
            yield entry.path.rpartition("/")[2]

    def exists(self, path: str) -> bool:
        """See `Store.exists`."""
        key = self._key(path)
        try:
            _call(self._where(path), lambda: obstore.head(self._client, key))
        except NotFoundError:
            return False
        return True

    def folders(self) -> list[str] | None:
        """See `Store.folders`; a bucket's root exists even when it holds nothing."""
        found = _call(self.uri, lambda: obstore.list_with_delimiter(self._client, self._prefix or None))
        if self._prefix and not found["common_prefixes"] and not found["objects"]:
            return None
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def _key(self, path: str) -> str:
        normal = normal_path(path, self.uri)
        return f"{self._prefix}/{normal}" if self._prefix else normal

    def _where(self, path: str) -> str:
        return f"{self.uri}/{path}"


@lru_cache(maxsize=64)
def bucket_client(bucket: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Return the client of a bucket.

    Args:
        bucket: URI without a path, for example "s3://name" or "https://host:port".
        options: Storage options, sorted by name; names in lower case.

    Raises:
        InvalidInputError: An option has no meaning for this kind of store, or a needed one is missing.
    """
    if bucket.startswith("memory:"):
        return MEMORY
    config, client, retry = _split_options(options)
    arguments: dict[str, Any] = {"client_options": client or None, "retry_config": retry or None}
    if config:
        arguments["config"] = config
    try:
        return from_url(bucket, **arguments)
    except (BaseError, ValueError, TypeError) as error:
        raise InvalidInputError(
            _first_line(error),
            where=f"storage options of {bucket}",
            remedy="see the options of obstore for this scheme",
        ) from error


def sorted_options(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Storage options as a key of `bucket_client`: names in lower case, values as text."""
    return tuple(sorted((name.lower(), _text(value)) for name, value in (options or {}).items()))


def _split_options(options: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    config: dict[str, str] = {}
    client: dict[str, Any] = {}
    retry: dict[str, Any] = {}
    for name, value in options:
        bare = name.removeprefix("aws_").removeprefix("google_").removeprefix("azure_")
        if bare in _CLIENT_OPTIONS:
            client[bare] = value
        elif name in _RETRY_OPTIONS:
            retry |= _retry_option(name, value)
        else:
            config[name] = value
    return config, client, retry


def _retry_option(name: str, value: str) -> dict[str, Any]:
    try:
        number = int(value)
    except ValueError:
        raise InvalidInputError("not a number", where=f"storage option {name}", found=repr(value)) from None
    return {"max_retries": number} if name == "client_max_retries" else {"retry_timeout": timedelta(seconds=number)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _call(where: str, do: Callable[[], _T]) -> _T:
    """Run an operation of the library; its errors become those of this package."""
    try:
        return do()
    except LanceDuckError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError("no such object", where=where) from error
    except (BaseError, OSError, ValueError) as error:
        if "404 Not Found" in _first_line(error):  # how the library puts a listing of a bucket that does not exist
            raise NotFoundError("no such bucket", where=where) from error
        raise StoreError(_first_line(error), where=where) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
