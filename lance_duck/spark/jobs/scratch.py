"""Temporary files in the table's directory, for data that is too large for messages between driver and tasks.

_indices/{uuid}/{uuid of a file}     arrays of bytes, one after the other
_indices/{uuid}/stop-{uuid}          empty; marks that a task of this list of jobs failed permanently

If a driver is killed, cleanup removes its files, like segments that were not committed.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Any, Final
from uuid import UUID, uuid4

from lance_duck.errors import CorruptError
from lance_duck.spark.costs import CACHED_SHARED, SHARED_BYTES
from lance_duck.spark.table_ref import TableRef
from lance_duck.store import ByteRange, Store, fetch, open_store
from lance_duck.wire import paths

_STOP: Final = "stop"


@dataclass(frozen=True)
class ScratchRef:
    """Reference to stored bytes. It can be pickled.

    Attributes:
        path: Path below the root of the table.
        start: Offset of the first byte.
        size: Number of bytes.
        digest: SHA-256 of the bytes, to detect changes.
    """

    path: str
    start: int
    size: int
    digest: bytes


@dataclass(frozen=True)
class Scratch:
    """Temporary storage for one list of jobs, in the table's directory.

    Can be pickled. The context manager clears it on exit.

    Attributes:
        place: The table.
        uuid: UUID of the directory.
    """

    place: TableRef
    uuid: UUID

    @classmethod
    def beside(cls, place: TableRef) -> Scratch:
        """Return new temporary storage in a table's directory, without writing anything yet."""
        return cls(place, uuid4())

    def put(self, parts: Sequence[bytes]) -> list[ScratchRef]:
        """Write arrays of bytes into one file. Raises StoreError."""
        path = f"{self._directory}/{uuid4()}"
        pieces, start = [], 0
        for part in parts:
            pieces.append(ScratchRef(path, start, len(part), hashlib.sha256(part).digest()))
            start += len(part)
        self._store().put(path, b"".join(parts), safe=False)
        return pieces

    def share(self, value: Any) -> Shared:
        """Share a value with all tasks. A large value is written once, and read once by each worker."""
        data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        return Shared(self, data if len(data) <= SHARED_BYTES else self.put([data])[0])

    def get(self, reference: ScratchRef) -> bytes:
        """Read bytes. Any process may have stored them.

        Raises:
            CorruptError: The bytes have changed.
            NotFoundError: The bytes no longer exist.
        """
        source = self._store().open(reference.path)
        (data,) = fetch([ByteRange(source, reference.start, reference.size)])
        content = bytes(data)
        if hashlib.sha256(content).digest() != reference.digest:
            raise CorruptError("the temporary bytes of a task of this job have changed", where=reference.path)
        return content

    def stop(self, jobs: UUID) -> None:
        """Signal the other tasks of a list of jobs to stop. Never raises."""
        with suppress(Exception):
            self._store().put(self._stop(jobs), b"", safe=False)

    def is_stopped(self, jobs: UUID) -> bool:
        """Return whether a task of a list of jobs has failed permanently."""
        return self._store().exists(self._stop(jobs))

    def clear(self) -> None:
        """Delete all files of this storage. Never raises."""
        with suppress(Exception):  # cleanup later removes remaining files
            store = self._store()
            store.delete([entry.path for entry in store.walk(self._directory)])

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    @property
    def _directory(self) -> str:
        return paths.index_directory(self.uuid)

    def _stop(self, jobs: UUID) -> str:
        return f"{self._directory}/{_STOP}-{jobs}"

    def _store(self) -> Store:
        return open_store(self.place.uri, dict(self.place.storage_options))


@dataclass(frozen=True)
class Shared:
    """A value for all tasks of a job. Its pickle is small."""

    scratch: Scratch
    content: bytes | ScratchRef

    @property
    def value(self) -> Any:
        """The value, cached per process. Do not modify it."""
        return _shared(self)


@lru_cache(maxsize=CACHED_SHARED)
def _shared(reference: Shared) -> Any:
    content = reference.content
    return pickle.loads(content if isinstance(content, bytes) else reference.scratch.get(content))  # noqa: S301  digest checked
