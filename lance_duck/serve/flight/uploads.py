"""Batches that clients upload."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, Self, TypeVar

import pyarrow as pa
from pyarrow import flight

from lance_duck.errors import InvalidInputError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import AbandonedError

_T = TypeVar("_T")

_PAUSE: Final = 0.1
"""Time between two looks whether the request still runs, in seconds."""


class FlightUpload:
    """The batches of a client.

    A thread reads them, because nothing interrupts a read of Arrow. A request therefore ends at its deadline, although
    its client sends nothing. Its Flight call ends later: the end of this object waits for the read.

    Args:
        context: The Flight call.
        reader: Its stream.
    """

    def __init__(self, context: flight.ServerCallContext, reader: flight.MetadataRecordBatchReader) -> None:
        self._context = context
        self._reader = reader
        self._thread = ThreadPoolExecutor(1, "lance-duck-flight-upload")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()

    def rows(self, call: ServerCall) -> pa.RecordBatchReader:
        """Return a reader of the batches.

        Raises:
            AbandonedError: The client left. The reader also raises it.
            InvalidInputError: The stream is not valid. The reader also raises it.
        """
        schema = self._read(call, lambda: self._reader.schema)
        return pa.RecordBatchReader.from_batches(schema, self.batches(call))

    def batches(self, call: ServerCall) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Raises as `rows` does."""
        while (chunk := self._read(call, self._next)) is not None:
            if chunk.data is not None:
                yield chunk.data
        self._check_client()  # Arrow ends a stream in the same way if its client leaves

    def _next(self) -> flight.FlightStreamChunk | None:
        try:
            chunk = self._reader.read_chunk()
        except StopIteration:
            return None
        if chunk.data is not None:
            chunk.data.validate(full=True)
        return chunk

    def _read(self, call: ServerCall, read: Callable[[], _T]) -> _T:
        call.check()
        found = self._thread.submit(read)
        while not found.done():
            wait((found,), min(_PAUSE, call.seconds_left))
            call.check()
        try:
            return found.result()
        except (pa.ArrowException, OSError, MemoryError, OverflowError) as error:
            self._check_client()
            reason = str(error)[:200]
            raise InvalidInputError("malformed upload", expected="Arrow batches", found=reason) from None

    def _check_client(self) -> None:
        if self._context.is_cancelled():
            raise AbandonedError("the client left before the end of its upload")
