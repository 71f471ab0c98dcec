"""Blobs as files: `BlobFile` reads only the requested bytes, `BlobColumn` wraps values in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_duck.arguments import checked_calls, suggest_names
from lance_duck.errors import InvalidInputError
from lance_duck.file.blobs.places import BlobPlace
from lance_duck.file.costs import READ_AHEAD
from lance_duck.store.request import ByteRange


@checked_calls
class BlobFile(io.BufferedIOBase):
    """A blob as a binary file, read-only. The blob's file is opened by the first read.

    A read that continues the previous one fetches at least `buffer_size` bytes. Other reads fetch only their bytes. Not
    safe to share between threads.

    Args:
        place: Location of the blob.
        buffer_size: Read-ahead in bytes, or 0.

    Raises:
        CorruptError: Raised by the first read if the blob extends past the end of its file.
        NotFoundError: Raised by the first read if the file of the blob is missing.
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
        """Return the size of the blob, in bytes."""
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
        """Set the position of the next read, which may be beyond the end, and return it.

        Raises:
            ValueError: The position is before the start, `whence` is not 0, 1 or 2, or the file is closed.
        """
        self._check_open()
        if whence not in (io.SEEK_SET, io.SEEK_CUR, io.SEEK_END):
            raise InvalidInputError("invalid whence", expected="0, 1 or 2", found=whence)
        base = (0, self._position, self.size() if whence == io.SEEK_END else 0)[whence]
        if base + offset < 0:
            raise InvalidInputError("negative position", where="seek", found=base + offset)
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Read up to `size` bytes. Reads to the end if `size` is negative or None."""
        self._check_open()
        remaining = max(0, self._opened().size - self._position)
        data = self._take(remaining if size is None or size < 0 else min(size, remaining))
        self._position += len(data)
        self._last_end = self._position
        return data

    def read1(self, size: int = -1, /) -> bytes:
        """Read up to `size` bytes. Reads at most `io.DEFAULT_BUFFER_SIZE` bytes if `size` is negative."""
        return self.read(io.DEFAULT_BUFFER_SIZE if size < 0 else size)

    def readall(self) -> bytes:
        """Read all bytes up to the end."""
        return self.read()

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a writable buffer, and return their number."""
        view = memoryview(buffer).cast("B")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def read_range(self, offset: int, length: int) -> bytes:
        """Read bytes at an offset of the blob, without moving the file position.

        Raises:
            InvalidInputError: The range extends past the blob.
        """
        return self.read_ranges([(offset, length)])[0]

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several ranges (offset, length) together. See `read_range`."""
        self._check_open()
        extent = self._opened()
        for offset, length in ranges:
            check_part(offset, length, extent.size)
        pieces = extent.source.read([(extent.offset + offset, length) for offset, length in ranges])
        return [part.tobytes() for part in pieces]

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._extent = None
        self._ahead = b""
        super().close()

    def __repr__(self) -> str:
        size = self._place.size
        return f"<BlobFile size={'unknown' if size is None else size}>"

    def _take(self, size: int) -> bytes:
        """Return the bytes at the position, from the read-ahead if possible."""
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
    """Raise InvalidInputError for a range outside a blob of `size` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise InvalidInputError(
            "the range is outside the blob", expected=f"within {size} bytes", found=f"{length} bytes at {offset}"
        )


def check_buffer_size(buffer_size: Any) -> int:
    """Check a buffer size, and return it. Raises InvalidInputError if it is not an integer of at least 0."""
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int) or buffer_size < 0:
        raise InvalidInputError("buffer_size", expected="a whole number >= 0", found=repr(buffer_size))
    return buffer_size


@suggest_names
class BlobColumn:
    """Iterates over the values of a binary column as files. A null becomes None.

    Args:
        blob_column: A pyarrow Array or ChunkedArray of binary or large_binary.

    Raises:
        InvalidInputError: The column is not binary or large_binary.
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
