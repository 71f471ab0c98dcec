"""A file that is being written. It appears atomically."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, TypeAlias

from lance_duck.errors import InternalError
from lance_duck.store.costs import COPY_BYTES
from lance_duck.store.request import ByteSource

Buffer: TypeAlias = Any  # anything that memoryview() accepts: bytes, numpy arrays, pyarrow buffers; contiguous


class Sink(ABC):
    """A new file that is being written, by one thread at a time.

    As a context manager it is closed at the end, or aborted when the block fails.

    Args:
        path: Name for messages.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.position = 0
        self._open = True

    def write(self, data: Buffer) -> None:
        """Append bytes. The buffer may be reused afterwards.

        Raises:
            StoreError: The disk or the service failed. The sink can only be aborted then.
        """
        if not self._open:
            raise InternalError("the file is closed", where=self.path)
        view = memoryview(data)
        if view.nbytes:
            self._write(view.cast("B"))
            self.position += view.nbytes

    def close(self) -> None:
        """Publish the file under its name, durably unless it is a late file. A second call does nothing.

        Raises:
            StoreError: The file could not be published, and was removed.
        """
        if self._open:
            self._open = False
            self._close()

    def abort(self) -> None:
        """Discard the file. Does nothing if it is closed. Never raises."""
        if self._open:
            self._open = False
            self._abort()

    def __enter__(self) -> Sink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    @abstractmethod
    def _write(self, data: memoryview) -> None:
        """Append bytes, at least one."""

    @abstractmethod
    def _close(self) -> None:
        """Publish the file, or discard it after an error."""

    @abstractmethod
    def _abort(self) -> None:
        """Leave nothing. Errors are swallowed."""


def copy_bytes(source: ByteSource, sink: Sink) -> None:
    """Copy a source to a sink and close it. The sink is aborted on failure."""
    with sink:
        for at in range(0, source.size, COPY_BYTES):
            for piece in source.read([(at, min(COPY_BYTES, source.size - at))]):
                sink.write(piece)
