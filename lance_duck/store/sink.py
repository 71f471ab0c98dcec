"""A file that is being written. It appears atomically."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, TypeAlias

from lance_duck.errors import InternalError
from lance_duck.store.costs import COPY_BYTES
from lance_duck.store.request import ByteSource

Buffer: TypeAlias = Any  # contiguous, and accepted by memoryview(): bytes, numpy arrays, pyarrow buffers


class Sink(ABC):
    """A new file that is being written, by one thread at a time.

    As a context manager, the sink is closed at the end of the block, or aborted if the block fails.

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
            StoreError: The disk or the service failed. After this the sink can only be aborted.
        """
        if not self._open:
            raise InternalError("the file is closed", where=self.path)
        view = memoryview(data)
        if view.nbytes:
            self._write(view.cast("B"))
            self.position += view.nbytes

    def close(self) -> None:
        """Publish the file. The file is then durable, unless it was created with `late`. A second call does nothing.

        Raises:
            StoreError: The file could not be published, and was removed.
        """
        if self._open:
            self._open = False
            self._close()

    def abort(self) -> None:
        """Discard the file. Does nothing if the file is closed. Never raises."""
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
        """Append one or more bytes."""

    @abstractmethod
    def _close(self) -> None:
        """Publish the file, or discard it after an error."""

    @abstractmethod
    def _abort(self) -> None:
        """Remove all traces of the file. Errors are ignored."""


def copy_bytes(source: ByteSource, sink: Sink) -> None:
    """Copy a source to a sink, and close the sink. The sink is aborted on failure."""
    with sink:
        for at in range(0, source.size, COPY_BYTES):
            for piece in source.read([(at, min(COPY_BYTES, source.size - at))]):
                sink.write(piece)
