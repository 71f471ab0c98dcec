"""Descriptions of data files: columns, pages, buffers and sizes, from the metadata alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from google.protobuf.message import DecodeError, Message

from lance_duck.encoding.layouts.page import EncodingDescription, Extent
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.file.reader import FOOTER, LanceFile
from lance_duck.wire.pb import encodings20_pb2, encodings21_pb2, encodings23_pb2

_MESSAGES: Final[Mapping[str, type[Message]]] = {
    "lance.encodings.ArrayEncoding": encodings20_pb2.ArrayEncoding,
    "lance.encodings21.PageLayout": encodings21_pb2.PageLayout,
    "lance.encodings23.PlanarLayout": encodings23_pb2.PlanarLayout,
}


@dataclass(frozen=True)
class BufferDescription:
    """A buffer: `size` bytes at `position` of the file."""

    position: int
    size: int


@dataclass(frozen=True)
class PageDescription:
    """A page: its buffers, and its encoding as text."""

    buffers: list[BufferDescription]
    encoding: str


@dataclass(frozen=True)
class ColumnDescription:
    """A physical column: buffers of the whole column, and its pages."""

    column_buffers: list[BufferDescription]
    pages: list[PageDescription]


@dataclass(frozen=True)
class FileMetadata:
    """The metadata of a file. Sizes are in bytes.

    `major_version` and `minor_version` come from the footer; 0 and 3 mean version 2.0.
    """

    schema: pa.Schema
    num_rows: int
    num_data_bytes: int
    num_column_metadata_bytes: int
    num_global_buffer_bytes: int
    global_buffers: list[BufferDescription]
    columns: list[ColumnDescription]
    major_version: int
    minor_version: int


@dataclass(frozen=True)
class ColumnStatistics:
    """Page count of a physical column, and the total size of its buffers."""

    num_pages: int
    size_bytes: int


@dataclass(frozen=True)
class FileStatistics:
    """Statistics of a file, with an entry for each physical column."""

    columns: list[ColumnStatistics]


def describe_file(file: LanceFile, schema: pa.Schema) -> FileMetadata:
    """Describe an open file with a given schema.

    Raises:
        CorruptError: The metadata of a column is corrupt.
    """
    (tail,) = file.source.read([(file.source.size - FOOTER.size, FOOTER.size)])
    columns_start, _, global_table, _, _, major, minor, _ = FOOTER.unpack(tail.tobytes())
    columns = [_column(file.column(i)) for i in file.column_numbers]
    global_buffers = _buffers(file.global_extents)
    num_global_bytes = sum(buffer.size for buffer in global_buffers)
    num_data_bytes, num_metadata_bytes = max(0, columns_start - num_global_bytes), global_table - columns_start
    if file.version == (0, 1):  # its footer has other fields: all bytes that are not pages count as column metadata
        num_data_bytes = sum(buffer.size for column in columns for page in column.pages for buffer in page.buffers)
        num_metadata_bytes = file.source.size - num_data_bytes
    return FileMetadata(
        schema,
        file.num_rows,
        num_data_bytes,
        num_metadata_bytes,
        num_global_bytes,
        global_buffers,
        columns,
        major,
        minor,
    )


def file_statistics(file: LanceFile) -> FileStatistics:
    """Count the pages and bytes of each column of an open file.

    Raises:
        CorruptError: The metadata of a column is corrupt.
    """
    return FileStatistics([_statistics(file.column(i)) for i in file.column_numbers])


def _statistics(column: ColumnMetadata) -> ColumnStatistics:
    sizes = [size for page in column.pages for _, size in page.buffers]
    return ColumnStatistics(len(column.pages), sum(sizes))


def _column(column: ColumnMetadata) -> ColumnDescription:
    pages = [PageDescription(_buffers(page.buffers), _text(page.encoding)) for page in column.pages]
    return ColumnDescription(_buffers(column.buffers), pages)


def _buffers(extents: Sequence[Extent]) -> list[BufferDescription]:
    return [BufferDescription(position, size) for position, size in extents]


def _text(encoding: EncodingDescription) -> str:
    """Return an encoding as protobuf text, or only its name if it is unknown."""
    if encoding.name not in _MESSAGES:
        return encoding.name
    message = _MESSAGES[encoding.name]()
    try:
        message.ParseFromString(encoding.value)
    except DecodeError:
        return encoding.name
    return f"{encoding.name} {{\n{message}}}"
