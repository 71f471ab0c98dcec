"""The container of 2.x data files.

    data buffers and global buffers      each at a multiple of 64 bytes, in any order
    checksums                            in files that lance_duck wrote, before global buffer 0: `checksums.container`
    column metadata                      a protobuf message for each column, back to back
    column metadata table                num_columns x (u64 position, u64 size)
    global buffer table                  num_global_buffers x (u64 position, u64 size)
    footer                               40 bytes

    offset | size | footer field (little-endian)
    0      | 8    | position of the metadata of column 0
    8      | 8    | position of the column metadata table
    16     | 8    | position of the global buffer table
    24     | 4    | number of global buffers
    28     | 4    | number of columns
    32     | 2    | major version
    34     | 2    | minor version
    36     | 4    | magic "LANC"

Versions in the footer: (0, 0) to (0, 2) are 0.1, with a different container (`file.v01.container`). (0, 3) and (2, 0)
are 2.0. (2, 1), (2, 2) and (2, 3) are the later versions. Global buffer 0 is a protobuf `FileDescriptor`: the schema
and the number of rows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
from google.protobuf.message import DecodeError

from lance_duck.checksums.container import (
    TRAILER,
    Checksums,
    Trailer,
    check_tail,
    damaged,
    has_trailer,
    read_mark,
    read_trailer,
)
from lance_duck.checksums.sidecars import read_sidecar_block, read_sidecar_mark
from lance_duck.encoding.layouts.page import Extent
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.file.blob_store import BlobStore, External
from lance_duck.file.metadata import ColumnMetadata, parse_column_metadata
from lance_duck.store import Store
from lance_duck.store.checked import CheckedSource
from lance_duck.store.costs import TAIL_BYTES
from lance_duck.store.request import ByteRange, Bytes, ByteSource, Request
from lance_duck.wire.pb import file_pb2

FOOTER = struct.Struct("<QQQIIHH4s")
MAGIC = b"LANC"
VERSIONS = {(0, 3): (2, 0), (2, 0): (2, 0), (2, 1): (2, 1), (2, 2): (2, 2), (2, 3): (2, 3)}
LEGACY_VERSIONS = {(0, 0): "0.1", (0, 1): "0.1", (0, 2): "0.1"}


@dataclass(frozen=True)
class LanceFile:
    """An open data file: its footer, tables and descriptor. Columns are parsed on demand.

    Attributes:
        source: Source of the bytes.
        version: (2, 0), (2, 1), (2, 2) or (2, 3); (0, 1) for a `LegacyFile`.
        num_rows: Number of rows, from the descriptor.
        num_columns: Number of physical columns.
        descriptor: Schema and number of rows.
        beside: Sidecars, managed and external blob files. None if the file was opened alone.
        sidecars: Position and size of the sidecar digests. None if the file does not store digests, or checksums are
            disabled.
        is_in_memory: Whether the source is in memory. Reads then do not need requests.
    """

    is_in_memory: ClassVar[bool] = False

    source: ByteSource
    version: tuple[int, int]
    num_rows: int
    num_columns: int
    descriptor: file_pb2.FileDescriptor
    _columns: Sequence[Bytes | bytes] = field(repr=False)
    _global_buffers: Sequence[Extent] = field(repr=False)
    _parsed: dict[int, ColumnMetadata] = field(default_factory=dict, repr=False)
    beside: BlobStore | None = field(default=None, repr=False)
    sidecars: Extent | None = None

    @property
    def num_global_buffers(self) -> int:
        """Number of global buffers, including the descriptor."""
        return len(self._global_buffers)

    @property
    def global_extents(self) -> Sequence[Extent]:
        """Positions and sizes of the global buffers."""
        return self._global_buffers

    @property
    def column_numbers(self) -> Sequence[int]:
        """Numbers of the physical columns."""
        return range(self.num_columns)

    def column(self, index: int) -> ColumnMetadata:
        """Return the metadata of a physical column.

        Raises:
            CorruptError: The metadata is corrupt, or the column does not exist.
        """
        metadata = self._parsed.get(index)
        if metadata is None:
            if not 0 <= index < self.num_columns:
                raise CorruptError(
                    "the column index is out of range",
                    where=self.source.path,
                    expected=f"below {self.num_columns}",
                    found=index,
                )
            metadata = parse_column_metadata(bytes(self._columns[index]), self.source, index)
            self._parsed[index] = metadata
        return metadata

    def global_buffer(self, index: int) -> Request[Bytes]:
        """Return the bytes of a global buffer.

        Raises:
            InvalidInputError: The index is out of range.
        """
        if not 0 <= index < len(self._global_buffers):
            raise InvalidInputError(f"no global buffer {index}", where=self.source.path)
        offset, size = self._global_buffers[index]
        (data,) = yield [ByteRange(self.source, offset, size)]
        return data


@dataclass(frozen=True, slots=True)
class Footer:
    """The last 40 bytes of a file. `parse_footer` checks that the positions ascend and lie within the file."""

    columns: int
    column_table: int
    global_table: int
    num_global_buffers: int
    num_columns: int
    written_version: tuple[int, int]

    def read_version(self, source: ByteSource) -> tuple[int, int]:
        """Return the version of the file, in the form of `LanceFile.version`.

        Raises:
            UnsupportedError: The version is not supported.
        """
        version = VERSIONS.get(self.written_version)
        if version is None:
            major, minor = self.written_version
            name = LEGACY_VERSIONS.get(self.written_version, f"{major}.{minor}")
            raise UnsupportedError(
                f"data files of version {name} are not supported",
                where=source.path,
                expected="2.0, 2.1, 2.2 or 2.3",
                remedy=_rewrite_hint(name),
            )
        return version


def open_file(source: ByteSource, *, checksums: bool = True, tail: Bytes | None = None) -> Request[LanceFile]:
    """Read the footer, tables, column metadata and descriptor of a 2.x file. See `file.open` for all versions.

    Args:
        source: The file.
        checksums: Whether bytes are verified if the file has checksums.
        tail: The last bytes of the file, at least the footer, if already read.

    Raises:
        CorruptError: The file is not a Lance file, is cut short, contradicts itself, or does not match its checksums.
        UnsupportedError: The version is not supported.
    """
    if source.size < FOOTER.size:
        raise CorruptError(
            "the file is too short", where=source.path, expected=f">= {FOOTER.size} bytes", found=source.size
        )
    if tail is None:
        (tail,) = yield [ByteRange(source, max(0, source.size - TAIL_BYTES), min(source.size, TAIL_BYTES))]
    tail_start = source.size - len(tail)
    footer = parse_footer(tail[-FOOTER.size :].tobytes(), source)
    if footer.columns < tail_start:
        head_start = max(0, footer.columns - TAIL_BYTES)  # likely includes global buffer 0 and the end of the checksums
        (head,) = yield [ByteRange(source, head_start, tail_start - head_start)]
        tail, tail_start = np.concatenate([head, tail]), head_start
    column_extents = _extents(tail, tail_start, footer.column_table, footer.num_columns, source)
    global_extents = _extents(tail, tail_start, footer.global_table, footer.num_global_buffers, source)
    # Copies, because a view would keep the whole file mapped while its metadata is cached.
    columns = [_slice(tail, tail_start, extent, source).tobytes() for extent in column_extents]
    if not global_extents:
        raise CorruptError("the file does not have a descriptor", where=source.path, expected="global buffer 0")
    first, size = global_extents[0]
    before = min(first, TRAILER.size)
    data = (yield from _piece(source, first - before, first + size, tail, tail_start)).tobytes()
    checked = source
    if checksums:
        checked = yield from _checked(source, data[:before], data[before:], first, tail, tail_start)
    version = footer.read_version(source)  # only after the checks: a flipped bit in the version is damage
    descriptor = _parsed_descriptor(data[before:], source)
    sidecars = read_sidecar_mark(data[before:]) if checked is not source else None
    if sidecars is not None and sum(sidecars) > first:
        raise damaged("the place of digests of blobs", source.path)
    return LanceFile(
        checked,
        version,
        descriptor.length,
        footer.num_columns,
        descriptor,
        columns,
        global_extents,
        sidecars=sidecars,
    )


def with_blob_files(
    file: LanceFile, store: Store, name: str, is_dataset_root: bool, open_external: External
) -> LanceFile:
    """Return a data file with access to blobs in other files: see `BlobStore`."""
    checksums = None if file.sidecars is None else partial(sidecar_checksums, file, file.sidecars)
    return replace(file, beside=BlobStore(store, name, is_dataset_root, open_external, checksums))


def sidecar_checksums(file: LanceFile, extent: Extent) -> Mapping[int, Checksums]:
    """Return the checksums of sidecars, by blob id.

    Args:
        file: The data file of the sidecars.
        extent: Position and size of the checksums in the data file: `file.sidecars`.

    Raises:
        CorruptError: The checksums are damaged.
    """
    (data,) = file.source.read([extent])
    return read_sidecar_block(data.tobytes(), file.source.path)


def _piece(source: ByteSource, start: int, stop: int, tail: Bytes, tail_start: int) -> Request[Bytes]:
    """Return a byte range of a file. The end of the file, from `tail_start`, is already in memory."""
    if start >= tail_start:
        return tail[start - tail_start : stop - tail_start]
    (data,) = yield [ByteRange(source, start, stop - start)]
    return data


def _checked(
    source: ByteSource, before: bytes, descriptor: bytes, first: int, tail: Bytes, tail_start: int
) -> Request[ByteSource]:
    """Verify the end of a file, and return a source that verifies all other bytes when they are read.

    Args:
        source: The file.
        before: Bytes before global buffer 0.
        descriptor: Global buffer 0.
        first: Position of global buffer 0.
        tail: The end of the file.
        tail_start: Position of `tail`.
    """
    where = source.path
    trailer = marked_trailer(where, before, descriptor, first, tail, source.size)
    if trailer is None:
        return source
    end = yield from _piece(source, first, source.size, tail, tail_start)
    check_tail(end, trailer, source.size, where)
    begin = first - trailer.size
    inside = begin - tail_start
    return CheckedSource(source, begin, trailer, tail[inside : first - tail_start].tobytes() if inside >= 0 else None)


def marked_trailer(
    where: str, before: bytes, descriptor: bytes, first: int, end: bytes | Bytes, file_size: int | None = None
) -> Trailer | None:
    """Return the trailer of a file's checksums.

    Args:
        where: Name of the file, for messages.
        before: The bytes before global buffer 0.
        descriptor: Global buffer 0.
        first: Position of global buffer 0.
        end: The end of the file, from any position on.
        file_size: Size of the file, in bytes. By default `end` is the whole file.

    Returns:
        The trailer, or None if the file was written without checksums.

    Raises:
        CorruptError: The descriptor declares checksums that are missing, or the file has undeclared checksums.
    """
    place, trailer = read_mark(descriptor), read_trailer(before)
    if place is None and trailer is None:
        if has_trailer(bytes(end), len(end) if file_size is None else file_size):
            raise damaged("the table of global buffers", where)
        return None
    if place is None or trailer is None or place != (first - trailer.size, trailer.size) or place[0] < 0:
        raise damaged("the descriptor, or the end of the checksums,", where)
    return trailer


def parse_footer(data: bytes, source: ByteSource) -> Footer:
    """Parse a footer, and check its magic and positions.

    Raises:
        CorruptError: The magic is wrong, or positions are outside the file.
        UnsupportedError: Positions are outside the file, and its version is not supported.
    """
    columns, column_table, global_table, num_global, num_columns, major, minor, magic = FOOTER.unpack(data)
    if magic != MAGIC:
        remedy = "is this a Parquet file?" if magic == b"PAR1" else "the file may be truncated, or is not a Lance file"
        raise CorruptError(
            "wrong magic bytes at the end of the file", where=source.path, expected=MAGIC, found=magic, remedy=remedy
        )
    footer = Footer(columns, column_table, global_table, num_global, num_columns, (major, minor))
    end = source.size - FOOTER.size
    if not columns <= column_table <= global_table <= end:
        footer.read_version(source)
        layout = f"{columns}, {column_table}, {global_table} of {end}"
        raise CorruptError("invalid positions in the footer", where=source.path, expected="ascending", found=layout)
    if column_table + 16 * num_columns > end or global_table + 16 * num_global > end:
        footer.read_version(source)
        raise CorruptError("tables in the footer reach beyond the file", where=source.path)
    return footer


def _rewrite_hint(name: str) -> str:
    if name == "0.1":
        return "compact the table with a newer writer, with data_storage_version='2.2'"
    return "write the table with data_storage_version='2.2'"


def _extents(tail: Bytes, base: int, position: int, count: int, source: ByteSource) -> list[Extent]:
    at = position - base
    table = tail[at : at + 16 * count].view("<u8").reshape(count, 2).tolist()
    for offset, size in table:
        if offset + size > source.size:
            raise CorruptError("metadata lies outside the file", where=source.path, found=f"{size} bytes at {offset}")
    return [(offset, size) for offset, size in table]


def _slice(tail: Bytes, base: int, extent: Extent, source: ByteSource) -> Bytes:
    start = extent[0] - base
    if start < 0:
        raise CorruptError("column metadata lies before its section", where=source.path, found=extent[0])
    return tail[start : start + extent[1]]


def _parsed_descriptor(data: bytes, source: ByteSource) -> file_pb2.FileDescriptor:
    descriptor = file_pb2.FileDescriptor()
    try:
        descriptor.ParseFromString(data)
    except DecodeError as error:
        raise CorruptError("file descriptor is not a protobuf message", where=source.path) from error
    return descriptor
