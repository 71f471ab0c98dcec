"""Column metadata of the 2.x container, checked against the size of the file.

Column metadata is the protobuf message `ColumnMetadata` (protos/file2.proto). The encoding of a page or column is a
`google.protobuf.Any`. Its type url names the message that describes the bytes:

    /lance.encodings.ArrayEncoding     page of a 2.0 file
    /lance.encodings21.PageLayout      page of a 2.1 or 2.2 file
    /lance.encodings.ColumnEncoding    column
"""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.any_pb2 import Any
from google.protobuf.message import DecodeError

from lance_duck.encoding.layouts.page import EncodingDescription, Extent, Page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import ByteSource
from lance_duck.wire.pb import file2_pb2


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """One physical column.

    Attributes:
        pages: Pages, in the order of their rows.
        buffers: Buffers that belong to the whole column.
        encoding: Encoding of the whole column, or None if the file does not declare one.
    """

    pages: tuple[Page, ...]
    buffers: tuple[Extent, ...]
    encoding: EncodingDescription | None

    @property
    def num_rows(self) -> int:
        """Number of rows of all pages."""
        return sum(page.num_rows for page in self.pages)


def parse_column_metadata(data: bytes, source: ByteSource, column: int) -> ColumnMetadata:
    """Parse the metadata of physical column `column` of `source`.

    Raises:
        CorruptError: The message is corrupt, or a buffer lies outside the file.
        UnsupportedError: An encoding is stored outside the metadata.
    """
    where = f"{source.path}: column {column}"
    message = file2_pb2.ColumnMetadata()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise CorruptError("the column metadata is not a protobuf message", where=where) from error
    pages = tuple(_page(p, source, f"{where}, page {i}") for i, p in enumerate(message.pages))
    buffers = _extents(message.buffer_offsets, message.buffer_sizes, source, where)
    return ColumnMetadata(pages, buffers, _encoding(message.encoding, where))


def _page(message: file2_pb2.ColumnMetadata.Page, source: ByteSource, where: str) -> Page:
    encoding = _encoding(message.encoding, where)
    if encoding is None:
        raise CorruptError("the page does not have an encoding", where=where)
    buffers = _extents(message.buffer_offsets, message.buffer_sizes, source, where)
    return Page(source, where, buffers, message.length, message.priority, encoding)


def _extents(offsets: object, sizes: object, source: ByteSource, where: str) -> tuple[Extent, ...]:
    starts, lengths = list(offsets), list(sizes)  # type: ignore[call-overload]
    if len(starts) != len(lengths):
        raise CorruptError("wrong buffer count", where=where, expected=f"{len(starts)} sizes", found=len(lengths))
    for start, length in zip(starts, lengths, strict=True):
        if start + length > source.size:
            raise CorruptError(
                "a buffer reaches beyond the end of the file",
                where=where,
                expected=f"at most {source.size} bytes",
                found=f"{length} bytes at {start}",
                remedy="the file may be truncated",
            )
    return tuple(zip(starts, lengths, strict=True))


def _encoding(message: file2_pb2.Encoding, where: str) -> EncodingDescription | None:
    location = message.WhichOneof("location")
    if location is None or location == "none":
        return None
    if location == "indirect":
        raise UnsupportedError("encodings outside the column metadata are not supported", where=where)
    packed = Any()
    try:
        packed.ParseFromString(message.direct.encoding)
    except DecodeError as error:
        raise CorruptError("the encoding is not a protobuf message", where=where) from error
    return EncodingDescription(packed.type_url, packed.value)
