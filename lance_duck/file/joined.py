"""Small files of one shape, read whole and opened as one: its rows are theirs, one file after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import ClassVar

import numpy as np

from lance_duck.encoding.layouts.page import Page
from lance_duck.errors import UnsupportedError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.store.base import check_range
from lance_duck.store.checked import CheckedSource
from lance_duck.store.request import Bytes, run


class MemorySource:
    """A `ByteSource` of bytes in memory.

    Args:
        path: Name for messages.
        data: The bytes.
    """

    remote = False

    def __init__(self, path: str, data: bytes) -> None:
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
    """Several files as one; see `join_files`.

    Attributes:
        parts: The files, in the order of their rows.
        begins: Where the bytes of each begin in the source, and where the last ends.
    """

    is_in_memory: ClassVar[bool] = True

    parts: Sequence[LanceFile] = ()
    begins: Sequence[int] = ()
    _joined: dict[int, ColumnMetadata] = field(default_factory=dict, repr=False)

    def column(self, index: int) -> ColumnMetadata:
        """Return the pages of a physical column of all files.

        Raises:
            CorruptError: As `LanceFile.column`.
            UnsupportedError: The column has bytes beside its pages, or is of several encodings.
        """
        metadata = self._joined.get(index)
        if metadata is None:
            metadata = self._joined[index] = self._join([part.column(index) for part in self.parts])
        return metadata

    def _join(self, columns: Sequence[ColumnMetadata]) -> ColumnMetadata:
        encoding = columns[0].encoding
        if any(column.buffers or column.encoding != encoding for column in columns):
            raise UnsupportedError("joined files whose columns differ", where=self.source.path)
        pages = tuple(
            self._moved(page, begin)
            for column, begin in zip(columns, self.begins, strict=False)
            for page in column.pages
        )
        return ColumnMetadata(pages, (), encoding)

    def _moved(self, page: Page, begin: int) -> Page:
        buffers = tuple([(offset + begin, size) for offset, size in page.buffers])
        return Page(self.source, page.where, buffers, page.num_rows, page.first_row, page.encoding)


def join_files(where: str, contents: Sequence[tuple[str, bytes]], *, checksums: bool = True) -> JoinedFile:
    """Open files as one.

    Args:
        where: Name of all, for messages.
        contents: Name and bytes of each, at least one.
        checksums: Whether all bytes are compared with the checksums of files that have some.

    Raises:
        CorruptError: One of them is not a Lance file, or contradicts itself, or is not what was written.
        UnsupportedError: They are of several versions, or have different numbers of columns.
    """
    parts = [_open_whole(path, data, checksums) for path, data in contents]
    first = parts[0]
    if any((part.version, part.num_columns) != (first.version, first.num_columns) for part in parts):
        raise UnsupportedError("joined files of different kinds", where=where)
    return JoinedFile(
        MemorySource(where, b"".join([data for _, data in contents])),
        first.version,
        sum(part.num_rows for part in parts),
        first.num_columns,
        first.descriptor,
        (),
        (),
        parts=parts,
        begins=[*accumulate((len(data) for _, data in contents), initial=0)],
    )


def _open_whole(path: str, data: bytes, checksums: bool) -> LanceFile:
    file = run(open_file(MemorySource(path, data), checksums=checksums))
    if isinstance(file.source, CheckedSource):
        file.source.check_whole(data)
    return file
