"""Arrow IPC streams of clients, checked before Arrow allocates memory for them.

message      4 × 0xff (missing in old streams), int32 size of the metadata, metadata, body
end          4 × 0xff (missing in old streams), int32 0

Metadata are a FlatBuffer `Message`. Its fields that are read here:

Message          1 header type (1 schema, 2 dictionary, 3 batch), 2 header, 3 int64 size of the body
DictionaryBatch  1 data, a RecordBatch
RecordBatch      0 int64 number of rows, 2 buffers (int64 offset in the body, int64 size), 3 compression

A compressed buffer begins with the int64 size of its content; -1 means that it is not compressed. A table of a
FlatBuffer begins with the int32 distance to its vtable, whose uint16 field offsets follow after 4 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct, error
from typing import Final

import pyarrow as pa

from lance_duck.errors import InvalidInputError

MOST_BYTES: Final = 1 << 30
"""Maximum size of a decompressed batch, in bytes. A small upload could otherwise fill the memory."""
_MOST_ROWS: Final = (1 << 31) - 1
_MOST_METADATA: Final = 64 << 20
_CONTINUES: Final = b"\xff\xff\xff\xff"
_DICTIONARY, _BATCH = 2, 3

_U8, _U16, _I32, _U32, _I64 = Struct("<B"), Struct("<H"), Struct("<i"), Struct("<I"), Struct("<q")
_NOT_ARROW: Final = (pa.ArrowException, OSError, OverflowError)
"""Errors of pyarrow for bytes that are not an Arrow IPC stream, and for missing memory."""


def read_upload(pieces: Callable[[], bytes], where: str) -> pa.RecordBatchReader:
    """Open an Arrow IPC stream. A batch is read when it is needed, and validated.

    Args:
        pieces: Returns the next bytes, or b"" at the end.
        where: Name of the stream, for messages.

    Raises:
        InvalidInputError: The bytes are not an Arrow IPC stream. The reader also raises it.
        MemoryError: The memory does not suffice. The reader also raises it.
    """
    file = _MessageFile(pieces, where)
    try:
        stream = pa.ipc.open_stream(pa.PythonFile(file, mode="r"))
    except MemoryError:
        raise
    except _NOT_ARROW as problem:
        raise _malformed(where, str(problem)) from None
    return pa.RecordBatchReader.from_batches(stream.schema, _validated(stream, file, where))


def _validated(stream: pa.RecordBatchReader, file: _MessageFile, where: str) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)
        except StopIteration:
            file.finish()
            return
        except MemoryError:
            raise
        except _NOT_ARROW as problem:
            raise _malformed(where, str(problem)) from None
        yield batch


def _malformed(where: str, found: str) -> InvalidInputError:
    return InvalidInputError("malformed upload", where=where, expected="an Arrow IPC stream", found=found[:200])


class _MessageFile:
    """A file with the messages of a stream, each checked when its first byte is read.

    Attributes:
        closed: Always False. pyarrow asks for it.
    """

    closed = False

    def __init__(self, pieces: Callable[[], bytes], where: str) -> None:
        self._pieces = pieces
        self._where = where
        self._arrived = memoryview(b"")
        self._checked = memoryview(b"")
        self._messages = self._all()

    def read(self, size: int) -> bytes:
        """Return the next bytes of the checked messages, fewer than `size` at the end only."""
        found: list[memoryview] = []
        while size:
            if not self._checked:
                self._checked = memoryview(next(self._messages, b""))
            if not self._checked:
                break
            found.append(self._checked[:size])
            self._checked = self._checked[size:]
            size -= len(found[-1])
        return b"".join(found)

    def close(self) -> None:
        """Do nothing: the server closes the connection."""

    def finish(self) -> None:
        """Read the end of the upload. Raises InvalidInputError if something follows the stream."""
        for _ in self._messages:
            pass
        if self._take(1):
            raise _malformed(self._where, "bytes after the end of the stream")

    def _all(self) -> Iterator[bytes]:
        """Yield the messages in parts, and at last the end of the stream."""
        while True:
            prefix = self._needed(4)
            continues = prefix == _CONTINUES
            size = _I32.unpack(self._needed(4) if continues else prefix)[0]
            whole = (_CONTINUES if continues else b"") + _I32.pack(size)
            if size == 0:
                yield whole
                return
            if not 0 < size <= _MOST_METADATA:
                raise _malformed(self._where, f"metadata of {size} bytes")
            metadata = self._needed(size)
            yield whole + metadata
            if body := self._body(metadata):
                yield body

    def _body(self, metadata: bytes) -> bytes:
        """Read and check the body of a message."""
        try:
            message = _FlatTable.root(metadata)
            body = self._needed(message.int64(3))
            header = message.table(2)
            kind = message.byte(1)
            batch = header.table(1) if header and kind == _DICTIONARY else header if kind == _BATCH else None
            if batch is not None:
                self._check_size(batch, body)
        except (error, ValueError, RecursionError):
            raise _malformed(self._where, "damaged metadata") from None
        return body

    def _check_size(self, batch: _FlatTable, body: bytes) -> None:
        size = len(body)
        if batch.table(3) is not None:
            size = sum(max(_I64.unpack_from(body, start)[0], 0) for start, length in batch.pairs(2) if length)
        if size > MOST_BYTES or batch.int64(0) > _MOST_ROWS:
            raise InvalidInputError(
                "a batch of the upload is too large",
                where=self._where,
                expected=f"at most {MOST_BYTES} bytes and {_MOST_ROWS} rows",
                found=f"{size} bytes and {batch.int64(0)} rows",
                remedy="send smaller batches",
            )

    def _needed(self, size: int) -> bytes:
        found = self._take(size)
        if size < 0 or len(found) < size:
            raise _malformed(self._where, "a stream without its end")
        return found

    def _take(self, size: int) -> bytes:
        """Return the next `size` bytes of the upload, or fewer at its end. Allocates memory as bytes arrive."""
        found: list[memoryview] = []
        while size > 0:
            if not self._arrived:
                self._arrived = memoryview(self._pieces())
            if not self._arrived:
                break
            found.append(self._arrived[:size])
            self._arrived = self._arrived[size:]
            size -= len(found[-1])
        return b"".join(found)


class _FlatTable:
    """A table of a FlatBuffer. Offsets outside the buffer raise `struct.error` or ValueError."""

    def __init__(self, data: bytes, place: int) -> None:
        self._data = data
        self._place = place
        self._vtable = place - int(_I32.unpack_from(data, place)[0])
        if self._vtable < 0:
            raise ValueError("a vtable before the buffer")
        self._size = int(_U16.unpack_from(data, self._vtable)[0])

    @classmethod
    def root(cls, data: bytes) -> _FlatTable:
        """Return the table at the root of a buffer."""
        return cls(data, _U32.unpack_from(data, 0)[0])

    def byte(self, field: int) -> int:
        """Return an uint8, 0 by default."""
        place = self._field(field)
        return int(_U8.unpack_from(self._data, place)[0]) if place else 0

    def int64(self, field: int) -> int:
        """Return an int64, 0 by default."""
        place = self._field(field)
        return int(_I64.unpack_from(self._data, place)[0]) if place else 0

    def table(self, field: int) -> _FlatTable | None:
        """Return a table, None by default."""
        place = self._field(field)
        return _FlatTable(self._data, place + _U32.unpack_from(self._data, place)[0]) if place else None

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """Yield pairs of int64."""
        place = self._field(field)
        if not place:
            return
        place += _U32.unpack_from(self._data, place)[0]
        for i in range(_U32.unpack_from(self._data, place)[0]):
            start = place + 4 + 16 * i
            yield _I64.unpack_from(self._data, start)[0], _I64.unpack_from(self._data, start + 8)[0]

    def _field(self, number: int) -> int:
        """Return the offset of a field, or 0."""
        entry = 4 + 2 * number
        if entry + 2 > self._size:
            return 0
        offset = int(_U16.unpack_from(self._data, self._vtable + entry)[0])
        return self._place + offset if offset else 0
