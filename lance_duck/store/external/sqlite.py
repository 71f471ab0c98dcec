"""An external manifest store in a SQLite file.

    table manifests: base_uri TEXT, version INTEGER, path TEXT; base_uri and version are the key

SQLite's locks synchronize writers on the same machine. They are unreliable on network disks.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StoreError
from lance_duck.redact import shown

WAIT: Final = 60.0  # maximum wait for another writer, in seconds

_TABLE = """CREATE TABLE IF NOT EXISTS manifests (
    base_uri TEXT NOT NULL, version INTEGER NOT NULL, path TEXT NOT NULL, PRIMARY KEY (base_uri, version)
) WITHOUT ROWID"""


class SqliteManifestStore:
    """See `ExternalManifestStore`.

    Args:
        path: The file, in an existing directory. It is created if it does not exist.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with self._connection() as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_TABLE)

    @classmethod
    def open(cls, url: str) -> SqliteManifestStore:
        """Open the file of a URL "sqlite:///absolute/path". Raises InvalidInputError."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        if parts.netloc or not path.strip("/") or "\0" in path:
            raise InvalidInputError(
                "not a URL of a file", expected="sqlite:///absolute/path.db", found=repr(shown(url))
            )
        return cls(path.removeprefix("/") if os.name == "nt" else path)

    def put_if_not_exists(self, base_uri: str, version: int, path: str) -> None:
        """See `ExternalManifestStore`."""
        with self._connection() as connection:
            try:
                connection.execute("INSERT INTO manifests VALUES (?, ?, ?)", (base_uri, version, path))
            except sqlite3.IntegrityError:
                raise AlreadyExistsError(f"version {version} already exists", where=base_uri) from None

    def put_if_exists(self, base_uri: str, version: int, path: str) -> None:
        """See `ExternalManifestStore`."""
        with self._connection() as connection:
            changed = connection.execute(
                "UPDATE manifests SET path = ? WHERE base_uri = ? AND version = ?", (path, base_uri, version)
            )
            if changed.rowcount == 0:
                raise NotFoundError(f"version {version} is not claimed", where=base_uri)

    def get(self, base_uri: str, version: int) -> str | None:
        """See `ExternalManifestStore`."""
        row = self._first("SELECT path FROM manifests WHERE base_uri = ? AND version = ?", base_uri, version)
        return None if row is None else str(row[0])

    def get_latest(self, base_uri: str) -> tuple[int, str] | None:
        """See `ExternalManifestStore`."""
        row = self._first(
            "SELECT version, path FROM manifests WHERE base_uri = ? ORDER BY version DESC LIMIT 1", base_uri
        )
        return None if row is None else (int(row[0]), str(row[1]))

    def delete(self, base_uri: str) -> None:
        """See `ExternalManifestStore`."""
        with self._connection() as connection:
            connection.execute("DELETE FROM manifests WHERE base_uri = ?", (base_uri,))

    def _first(self, query: str, *values: object) -> tuple[Any, ...] | None:
        with self._connection() as connection:
            row: tuple[Any, ...] | None = connection.execute(query, values).fetchone()
            return row

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open a connection for one block. Connections cannot be shared by threads or outlive a fork."""
        try:
            with closing(sqlite3.connect(self.path, timeout=WAIT, isolation_level=None)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"manifest store: {error}", where=self.path) from error
