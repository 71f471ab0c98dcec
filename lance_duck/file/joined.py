"""Small files with the same layout, read whole and opened as one file with their concatenated rows.

`open_file` is the reference implementation for a single file. `join_files` rejects files that `open_file` would reject
and files that differ in layout. The caller then opens each file separately.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Final

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.checksums.container import TRAILER, check_extents, check_tail
from lance_duck.encoding.layouts.page import Page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.file.metadata import ColumnMetadata, parse_column_metadata
from lance_duck.file.reader import FOOTER, MAGIC, VERSIONS, LanceFile, marked_trailer
from lance_duck.store.base import check_range
from lance_duck.store.request import Bytes
from lance_duck.wire.pb import file_pb2

_FOOTER: Final = np.dtype(
    {
        "names": ["columns", "column_table", "global_table", "num_global", "num_columns", "major", "minor", "magic"],
        "formats": ["<u8", "<u8", "<u8", "<u4", "<u4", "<u2", "<u2", "S4"],
    }
)
_ROWS_OF_PAGES: Final = (2, 1)
"""First version in which page lengths always count rows. In version 2.0 they may count list items."""

Extents = NDArray[np.uint64]


class MemorySource:
    """A `ByteSource` of bytes in memory.

    Args:
        path: Name for messages.
        data: The bytes.
    """

    remote = False

    def __init__(self, path: str, data: bytes | memoryview) -> None:
        self.path = path
        self.size = len(data)
        self._data: Bytes = np.frombuffer(data, np.uint8)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[Bytes]:
        """See `ByteSource.read`."""
        for offset, size in ranges:
            check_range(self.path, self.size, offset, size)
        return [self._data[offset : offset + size] for offset, size in ranges]


@dataclass(frozen=True)
class JoinedFile(LanceFile):
    """Several files as one. See `join_files`.

    Attributes:
        contents: Name and bytes of each file, in row order. The bytes are views into `source`.
        rows: Number of rows of each file.
        extents: uint64 (files, columns, 2): position and size of the metadata of each column.
    """

    is_in_memory: ClassVar[bool] = True

    contents: Sequence[tuple[str, memoryview]] = ()
    rows: Sequence[int] = ()
    extents: Extents = field(default_factory=lambda: np.empty((0, 0, 2), np.uint64), repr=False)
    _joined: dict[int, ColumnMetadata] = field(default_factory=dict, repr=False)

    def column(self, index: int) -> ColumnMetadata:
        """Return the pages of a physical column of all files.

        Raises:
            CorruptError: The metadata is corrupt, or the column does not exist.
            UnsupportedError: The column has column buffers, or more than one encoding.
        """
        metadata = self._joined.get(index)
        if metadata is None:
            metadata = self._joined[index] = self._join(index)
        return metadata

    def _join(self, index: int) -> ColumnMetadata:
        """Parse the metadata of a column. Files with identical metadata bytes are parsed once."""
        if not 0 <= index < self.num_columns:
            raise CorruptError(
                "the column index is out of range",
                where=self.source.path,
                expected=f"below {self.num_columns}",
                found=index,
            )
        parsed: dict[bytes, tuple[ColumnMetadata, int]] = {}
        pages: list[Page] = []
        begin, first = 0, None
        has_rows = self.version >= _ROWS_OF_PAGES
        extents = self.extents[:, index].tolist()
        for (path, file), num_rows, (start, size) in zip(self.contents, self.rows, extents, strict=True):
            data = bytes(file[start : start + size])
            column, end = parsed.get(data) or (None, 0)
            if column is None or end > len(file):
                column = parse_column_metadata(data, MemorySource(path, file), index)
                first = first or column
                if column.buffers or column.encoding != first.encoding:
                    raise UnsupportedError("joined files cannot have different columns", where=self.source.path)
                parsed[data] = column, max((sum(extent) for page in column.pages for extent in page.buffers), default=0)
            if has_rows and sum([page.num_rows for page in column.pages]) != num_rows:
                raise CorruptError("wrong row count in a column of a joined file", where=path, expected=num_rows)
            for page in column.pages:
                buffers = tuple([(offset + begin, length) for offset, length in page.buffers])
                pages.append(Page(self.source, page.where, buffers, page.num_rows, page.first_row, page.encoding))
            begin += len(file)
        return ColumnMetadata(tuple(pages), (), None if first is None else first.encoding)


def join_files(where: str, contents: Sequence[tuple[str, bytes]], *, checksums: bool = True) -> JoinedFile:
    """Open several files as one.

    Args:
        where: Name of the joined file, for messages.
        contents: Name and bytes of each file; at least one file.
        checksums: Whether files with checksums are verified.

    Raises:
        CorruptError: A file is not a Lance file, contradicts itself, or does not match its checksums.
        UnsupportedError: The files differ in version, or in their number of columns or global buffers.
    """
    files = [data for _, data in contents]
    sizes = np.array([len(file) for file in files], np.uint64)
    footers = _footers(where, files, sizes)
    first = footers[0]
    columns = _tables(files, footers["column_table"], int(first["num_columns"]))
    buffers = _tables(files, footers["global_table"], int(first["num_global"]))
    is_inside = [_inside(columns, sizes), _inside(buffers, sizes), columns[..., 0] >= footers["columns"][:, None]]
    if not all(map(np.all, is_inside)) or not buffers.shape[1]:
        raise CorruptError("metadata of a joined file are outside their section", where=where)
    descriptors: dict[bytes, file_pb2.FileDescriptor] = {}
    rows = []
    for (path, file), (start, size) in zip(contents, buffers[:, 0].tolist(), strict=True):
        if checksums:
            _check(path, file, start, size)
        data = file[start : start + size]
        if data not in descriptors:
            descriptors[data] = _parsed(data, path)
        rows.append(descriptors[data].length)
    whole = b"".join(files)
    ends = np.cumsum([0, *map(len, files)]).tolist()
    views = [memoryview(whole)[begin:end] for begin, end in pairwise(ends)]
    return JoinedFile(
        MemorySource(where, whole),
        VERSIONS[int(first["major"]), int(first["minor"])],
        sum(rows),
        int(first["num_columns"]),
        next(iter(descriptors.values())),
        (),
        (),
        contents=[(path, view) for (path, _), view in zip(contents, views, strict=True)],
        rows=rows,
        extents=columns,
    )


def _footers(where: str, files: Sequence[bytes], sizes: NDArray[np.uint64]) -> NDArray[np.void]:
    """Return the footers. Checks that their counts are equal, and that positions ascend within each file."""
    if int(sizes.min()) < FOOTER.size:
        raise CorruptError("a joined file is too short", where=where, expected=f">= {FOOTER.size} bytes")
    footers = np.frombuffer(b"".join([file[-FOOTER.size :] for file in files]), _FOOTER)
    first = footers[0]
    is_known = first["magic"] == MAGIC and (int(first["major"]), int(first["minor"])) in VERSIONS
    alike = ("num_global", "num_columns", "major", "minor", "magic")
    if not is_known or any((footers[name] != first[name]).any() for name in alike):
        raise UnsupportedError("joined files cannot be of different kinds", where=where)
    ends = sizes - np.uint64(FOOTER.size)
    columns, column_table, global_table = (footers[name] for name in ("columns", "column_table", "global_table"))
    is_ordered = (columns <= column_table) & (column_table <= global_table) & (global_table <= ends)
    sections = ((column_table, "num_columns"), (global_table, "num_global"))
    fits = [position + np.uint64(16) * footers[count] <= ends for position, count in sections]
    if not (is_ordered.all() and all(map(np.all, fits))):
        raise CorruptError("invalid positions in the footer of a joined file", where=where)
    return footers


def _tables(files: Sequence[bytes], positions: NDArray[np.uint64], count: int) -> Extents:
    """Return one table per file with the positions and sizes of `count` extents."""
    layout = struct.Struct(f"<{2 * count}Q")
    rows = [layout.unpack_from(file, at) for file, at in zip(files, positions.tolist(), strict=True)]
    return np.array(rows, np.uint64).reshape(len(files), count, 2)


def _inside(extents: Extents, sizes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return, for each extent, whether it lies within its file."""
    room = sizes[:, None]
    inside: NDArray[np.bool_] = (extents[..., 0] <= room) & (extents[..., 1] <= room - extents[..., 0])
    return inside


def _check(path: str, file: bytes, start: int, size: int) -> None:
    """Verify a file if it has checksums. `start` and `size` are the position and size of its descriptor."""
    trailer = marked_trailer(path, file[max(0, start - TRAILER.size) : start], file[start : start + size], start, file)
    if trailer is not None:
        check_tail(file[start:], trailer, len(file), path)
        check_extents(file, file[start - trailer.size : start], trailer, path)


def _parsed(data: bytes, path: str) -> file_pb2.FileDescriptor:
    try:
        return file_pb2.FileDescriptor.FromString(data)
    except DecodeError as error:
        raise CorruptError("file descriptor is not a protobuf message", where=path) from error
