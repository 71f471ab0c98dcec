"""Blobs as files: `BlobFile` reads only the bytes that are asked for, `BlobColumn` has values in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError
from lance_duck.file.blobs.places import BlobPlace
from lance_duck.file.costs import READ_AHEAD
from lance_duck.store.request import ByteRange


@checked_calls
class BlobFile(io.BufferedIOBase):
    """A blob as a binary file, read-only. Nothing is opened or read before the first read.

    A read that continues where the one before ended fetches `buffer_size` bytes at once; others fetch just their bytes.
    For one thread at a time.

    Args:
        place: Where the blob lies.
        buffer_size: Bytes to read ahead; 0 for none.

    Raises:
        CorruptError: Raised by the first read, when the blob reaches beyond the end of its file.
        NotFoundError: Raised by the first read, when the file of the blob is missing.
    """

    def __init__(self, place: BlobPlace, buffer_size: int = READ_AHEAD) -> None:
        super().__init__()
        self._place = place
        self._buffer_size = check_buffer_size(buffer_size)
        self._extent: ByteRange | None = None
        self._position = 0
        self._last_end = -1
        self._ahead = b""
        self._ahead_at = 0

    def size(self) -> int:
        """Return the bytes of the blob."""
        size = self._place.size
        return self._opened().size if size is None else size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the position of the next read, perhaps beyond the end, and return it.

        Raises:
            ValueError: The position is before the start, `whence` is not 0, 1 or 2, or the file is closed.
        """
        self._check_open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise InvalidInputError("whence of a seek", expected="0, 1 or 2", found=whence)
        base = (0, self._position, self.size() if whence == io.SEEK_END else 0)[whence]
        if base + offset < 0:
            raise InvalidInputError("negative position", where="seek", found=base + offset)
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Read `size` bytes, or fewer at the end; all up to the end when it is negative or None."""
        self._check_open()
        remaining = max(0, self._opened().size - self._position)
        data = self._take(remaining if size is None or size < 0 else min(size, remaining))
        self._position += len(data)
        self._last_end = self._position
        return data

    def read1(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes, at most `io.DEFAULT_BUFFER_SIZE` when it is negative."""
        return self.read(io.DEFAULT_BUFFER_SIZE if size < 0 else size)

    def readall(self) -> bytes:
        """Read all bytes up to the end."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Fill a writable buffer, or less of it at the end; return the number of bytes read."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes at an offset of the blob, without moving the file position.

        Raises:
            InvalidInputError: The range reaches beyond the blob.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several ranges (offset, length) at once, each as `read_range` does."""
        self._check_open()
        extent = self._opened()
        for offset, length in ranges:
            check_part(offset, length, extent.size)
        pieces = extent.source.read([(extent.offset + offset, length) for offset, length in ranges])
        return [part.tobytes() for part in pieces]

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self._extent = None
        self._ahead = b""
        super().close()

    def __repr__(self) -> str:
        size = self._place.size
        return f"<BlobFile size={'unknown' if size is None else size}>"

    def _take(self, size: int) -> bytes:
        """Return the bytes from the position on, from those that were read ahead if possible."""
        within = self._position - self._ahead_at
        buffered = self._ahead[within : within + size] if 0 <= within < len(self._ahead) else b""
        missing = size - len(buffered)
        if not missing:
            return buffered
        extent, start = self._opened(), self._position + len(buffered)
        goes_on = self._position == self._last_end
        length = min(max(missing, self._buffer_size), extent.size - start) if goes_on else missing
        (piece,) = extent.source.read([(extent.offset + start, length)])
        if length > missing:
            self._ahead, self._ahead_at = piece.tobytes(), start
        return buffered + piece[:missing].tobytes()

    def _opened(self) -> ByteRange:
        self._check_open()
        if self._extent is None:
            self._extent = self._place.extent()
        return self._extent

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("the blob is closed")


def check_part(offset: int, length: int, size: int) -> None:
    """Refuse a range that is not inside a blob of `size` bytes, with InvalidInputError."""
    if offset < 0 or length < 0 or offset + length > size:
        raise InvalidInputError("range of a blob", expected=f"within {size} bytes", found=f"{length} bytes at {offset}")


def check_buffer_size(buffer_size: Any) -> int:
    """Return a checked buffer size. Raises InvalidInputError if it is not a whole number of at least 0."""
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 0:
        raise InvalidInputError("buffer_size", expected="a whole number >= 0", found=repr(buffer_size))
    return buffer_size


class BlobColumn:
    """Iterates the values of a binary column as files, with None for a null.

    Args:
        blob_column: A pyarrow Array or ChunkedArray of binary or large_binary.

    Raises:
        InvalidInputError: The column is of another type.
    """

    def __init__(self, blob_column: Any) -> None:
        type_name = (
            blob_column.type if isinstance(blob_column, pa.Array | pa.ChunkedArray) else type(blob_column).__name__
        )
        if type_name not in (pa.binary(), pa.large_binary()):
            raise InvalidInputError("Expected a binary array", where="BlobColumn", found=type_name)
        self.blob_column = blob_column

    def __iter__(self) -> Iterator[io.BytesIO | None]:
        for value in self.blob_column:
            yield io.BytesIO(value.as_py()) if value.is_valid else None
