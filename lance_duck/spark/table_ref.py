"""References to tables that can be sent to workers, and the cache of a worker's open tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.redact import shown
from lance_duck.snapshot import Location

OPENED = 16
"""Maximum number of table versions that a worker keeps open."""


@dataclass(frozen=True)
class TableRef:
    """Reference to a table, for drivers and workers. Can be pickled, and is cheap to create.

    Attributes:
        uri: An absolute path or the URI of an object store.
        storage_options: Settings of the object store. Omitted from `repr`.
    """

    uri: str
    storage_options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"Place({shown(self.uri)!r})"

    @classmethod
    def of(cls, uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None = None) -> TableRef:
        """Parse a user's path or URI. Relative paths become absolute, and Spark's `file:` URIs become paths.

        Raises:
            WrongTypeError: `uri` is not a path or URI, or the settings are not a dict of strings.
        """
        where = Location.of(uri, storage_options)
        return cls(_absolute(os.fspath(uri)), tuple(sorted(where.storage_options.items())))

    def dataset(self, version: int | str | tuple[str | None, int | str | None] | None = None) -> LanceDataset:
        """Open the table at a version, by default the newest.

        Raises:
            NotFoundError: The table or the version does not exist.
        """
        return dataset(self.uri, version, storage_options=dict(self.storage_options))

    def pinned(self, version: int | tuple[str, int]) -> LanceDataset:
        """Return a version that each worker opens only once, with its cached data. Do not modify it.

        Args:
            version: A number, or a branch and a number.

        Raises:
            NotFoundError: The table or the version does not exist.
        """
        entry = _opened.get((self, version), lambda: _Opened(self.dataset(version)))
        if entry.is_replaced():  # a new table was created at the same URI
            _opened.drop((self, version))
            entry = _opened.get((self, version), lambda: _Opened(self.dataset(version)))
        return entry.table


def pin(table: LanceDataset) -> int | tuple[str, int]:
    """Return the version of a dataset as an argument of `TableRef.pinned`."""
    branch = table.handle.snapshot.branch
    return table.version if branch is None else (branch, table.version)


class _Opened:
    """An open table, and a check that its manifest has not been replaced."""

    def __init__(self, table: LanceDataset) -> None:
        snapshot = table.handle.snapshot
        self.table = table
        self._store = snapshot.store
        self._path = snapshot.manifest.path.removeprefix(f"{self._store.uri}/")
        self._stamp = self._store.stamp(self._path)

    def is_replaced(self) -> bool:
        return self._store.stamp(self._path) != self._stamp


_opened: LruCache[_Opened] = LruCache(OPENED)


def _absolute(uri: str) -> str:
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return unquote(parts.path)
    return uri if "://" in uri else os.path.abspath(uri)
