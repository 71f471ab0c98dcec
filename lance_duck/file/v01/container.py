"""The container of 0.1 data files.

    pages                     batch after batch, column after column (depth first); no gaps, no alignment
    page table                num_fields x num_batches x (i64 position, i64 length)
    statistics                separate pages, and their page table; not read
    values of dictionaries    as pages, see `file.v01.pages`
    manifest                  u32 length, protobuf `Manifest`: the fields of the file
    metadata                  u32 length, protobuf `Metadata` (protos/file.proto)
    footer                    16 bytes

    offset | size | footer field (little-endian)
    0      | 8    | position of the metadata
    8      | 2    | 0
    10     | 2    | 1 or 2, without a difference in meaning; 0 in the oldest files
    12     | 4    | magic "LANC"

The page table has a row for each id, from the lowest to the highest field id in the manifest. Structs and ids that the
file does not have get (0, 0). A length is the number of rows, plus one for lists. In files that pylance 0.5 added to a
fragment, the table begins with id 0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from lance_duck.arrow.types import is_bytes, is_text, storage_type
from lance_duck.encoding.layouts.page import EncodingDescription, Page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.file.metadata import ColumnMetadata
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import ByteRange, Bytes, ByteSource, Request
from lance_duck.wire.limits import ROW_OFFSETS
from lance_duck.wire.pb import file_pb2, table_pb2
from lance_duck.wire.schema import Field, schema_from_proto

FOOTER = struct.Struct("<QHH4s")
VERSION = (0, 1)

_LENGTH = struct.Struct("<I")
_ENTRY = 16
_OFFSET = 8
_MOST_VALUES = 1 << 40
_MOST_BITS = 1 << 40
Int64s = NDArray[np.int64]
_M = TypeVar("_M", bound=Message)


@dataclass(frozen=True)
class LegacyFile(LanceFile):
    """An open 0.1 file. The number of a physical column is the id of its field.

    Attributes:
        bounds: int64 (num_batches + 1,), first row of each batch, and the number of rows.
        pages: int64 (num_fields, num_batches, 2), position and length of each page. Positions lie within the file.
        first_field: Field id of the first row of the page table.
    """

    bounds: Int64s = field(default_factory=lambda: np.zeros(1, np.int64), repr=False)
    pages: Int64s = field(default_factory=lambda: np.empty((0, 0, 2), np.int64), repr=False)
    first_field: int = 0

    @property
    def column_numbers(self) -> list[int]:
        """Ids of the fields of the file."""
        return sorted(self.fields)

    @cached_property
    def fields(self) -> Mapping[int, Field]:
        """Fields of the file by id, at all depths."""
        schema = schema_from_proto(self.descriptor.schema.fields, self.descriptor.schema.metadata)
        return {f.id: f for f in schema.walk()}

    def dictionary_extent(self, field_id: int) -> tuple[int, int]:
        """Return the position of the values of a dictionary, and their number.

        Raises:
            CorruptError: The field lacks a dictionary, or the position lies outside the file.
        """
        proto = next((f for f in self.descriptor.schema.fields if f.id == field_id), None)
        where = f"{self.source.path}: dictionary of field {field_id}"
        if proto is None or not proto.HasField("dictionary"):
            raise CorruptError("the dictionary does not have values", where=where)
        position, length = proto.dictionary.offset, proto.dictionary.length
        if not 0 <= position <= self.source.size or not 0 <= length <= self.source.size:
            raise CorruptError(
                "the values of a dictionary are outside the file", where=where, found=f"{length} at {position}"
            )
        return position, length

    def page_row(self, field_id: int) -> tuple[Int64s, Int64s]:
        """Return the positions and lengths of a field's pages, one page per batch.

        Raises:
            CorruptError: The field is not in the page table.
        """
        row = field_id - self.first_field
        if not 0 <= row < len(self.pages):
            raise CorruptError(
                "the field is not in the page table",
                where=self.source.path,
                expected=f"{self.first_field} to {self.first_field + len(self.pages) - 1}",
                found=field_id,
            )
        return self.pages[row, :, 0], self.pages[row, :, 1]

    def column(self, index: int) -> ColumnMetadata:
        """Return a field's pages, with the extents in the page table. Structs do not have pages.

        Raises:
            CorruptError: The field is not in the page table.
        """
        column = self._parsed.get(index)
        if column is None:
            positions, lengths = self.page_row(index)
            kind = self.fields.get(index)
            column = self._parsed[index] = ColumnMetadata(self._described(index, kind, positions, lengths), (), None)
        return column

    def _described(self, index: int, kind: Field | None, positions: Int64s, lengths: Int64s) -> tuple[Page, ...]:
        if kind is None or kind.logical_type == "struct" or not len(positions):
            return ()
        sizes = np.clip(page_sizes(kind, lengths), 0, self.source.size - positions)
        starts = positions
        if is_texts(kind):  # the bytes are between the previous page and the offsets
            before = self._ends[np.searchsorted(self._ends, positions, side="right") - 1]
            starts = np.where(lengths > 0, before, positions)
        description = EncodingDescription(f"/{kind.logical_type}", b"")
        extents = zip(starts.tolist(), (positions + sizes - starts).tolist(), strict=True)
        name = f"{self.source.path}: field {index}"
        rows = zip(extents, np.diff(self.bounds).tolist(), self.bounds[:-1].tolist(), strict=True)
        return tuple(
            Page(self.source, f"{name}, batch {i}", (extent,), count, first, description)
            for i, (extent, count, first) in enumerate(rows)
        )

    @cached_property
    def _ends(self) -> Int64s:
        """End positions of all pages, ascending, preceded by 0."""
        ends = [np.zeros(1, np.int64)]
        for number, kind in self.fields.items():
            positions, lengths = self.page_row(number)
            with suppress(UnsupportedError):  # an unsupported column does not prevent reading others
                sizes = np.zeros_like(lengths) if kind.logical_type == "struct" else page_sizes(kind, lengths)
                ends.append(positions + np.clip(sizes, 0, self.source.size - positions))
        return np.sort(np.concatenate(ends))


def is_texts(kind: Field) -> bool:
    """Return whether the pages of a field hold variable-length values."""
    return not kind.children and (kind.is_json or is_text(_stored(kind)) or is_bytes(_stored(kind)))


def page_sizes(kind: Field, lengths: Int64s) -> Int64s:
    """Compute the sizes of a field's pages in bytes from their lengths. No size is negative.

    Raises:
        UnsupportedError: The type is unknown.
    """
    if kind.is_list:
        width = _OFFSET if kind.logical_type.startswith("large") else _OFFSET // 2
        return lengths * width
    if is_texts(kind):
        return np.where(lengths > 0, (lengths + 1) * _OFFSET, 0)
    return (lengths * storage_bits(_stored(kind)) + 7) // 8


def storage_bits(type_: pa.DataType) -> int:
    """Return the bits per value of a fixed-width storage type. For a dictionary, the bits of an index.

    Raises:
        UnsupportedError: The type is not of fixed width, or is too wide.
    """
    if pa.types.is_null(type_):
        return 0
    if pa.types.is_dictionary(type_):
        return int(type_.index_type.bit_width)
    if pa.types.is_fixed_size_list(type_):
        bits = int(type_.list_size) * storage_bits(storage_type(type_.value_type))
        if bits > _MOST_BITS:
            raise UnsupportedError(
                "the fixed-size list is too large", expected=f"at most {_MOST_BITS} bits", found=bits
            )
        return bits
    try:
        return int(type_.bit_width)
    except ValueError:
        raise UnsupportedError("files of version 0.1 cannot store this type", found=type_) from None


def _stored(kind: Field) -> pa.DataType:
    return storage_type(kind.to_arrow().type)


def open_legacy(source: ByteSource, tail: Bytes) -> Request[LegacyFile]:
    """Read the metadata, the fields and the page table of a file.

    Args:
        source: The file.
        tail: The end of the file, at least the footer.

    Raises:
        CorruptError: The file contradicts itself, or is cut short.
    """
    end = _End(source, tail)
    position, *_ = FOOTER.unpack(tail[-FOOTER.size :].tobytes())
    metadata = yield from end.message(position, file_pb2.Metadata.FromString, "metadata")
    manifest = yield from end.message(metadata.manifest_position, table_pb2.Manifest.FromString, "manifest")
    bounds = _bounds(metadata, source)
    ids = [f.id for f in manifest.fields]
    if not ids or min(ids) < 0:
        raise CorruptError(
            "invalid field ids of the file", where=source.path, expected="ids of 0 and more", found=ids[:4]
        )
    first = _first_row(metadata, manifest, ids, len(bounds) - 1)
    shape = (max(ids) - first + 1, len(bounds) - 1, 2)
    table = yield from end.read(metadata.page_table_position, shape[0] * shape[1] * _ENTRY, "page table")
    pages = np.frombuffer(table.tobytes(), "<i8").reshape(shape)
    if len(table) and (pages.min() < 0 or pages[..., 0].max() > source.size or pages[..., 1].max() > _MOST_VALUES):
        raise CorruptError("the page is outside the file", where=source.path, expected=f"within {source.size} bytes")
    descriptor = file_pb2.FileDescriptor(length=int(bounds[-1]))
    descriptor.schema.fields.extend(manifest.fields)
    for key, value in manifest.schema_metadata.items():
        descriptor.schema.metadata[key] = value
    return LegacyFile(
        source, VERSION, int(bounds[-1]), len(ids), descriptor, (), (), bounds=bounds, pages=pages, first_field=first
    )


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a file. Its last bytes are already in memory."""

    source: ByteSource
    tail: Bytes

    def read(self, position: int, size: int, what: str) -> Request[Bytes]:
        """Return bytes before the footer. Raises CorruptError if the range overlaps the footer."""
        limit = self.source.size - FOOTER.size
        if position + size > limit:
            raise CorruptError(
                f"{what} reaches beyond the file",
                where=self.source.path,
                expected=f"an end before {limit}",
                found=f"{size} bytes at {position}",
            )
        start = position - (self.source.size - len(self.tail))
        if start >= 0:
            return self.tail[start : start + size]
        (data,) = yield [ByteRange(self.source, position, size)]
        return data

    def message(self, position: int, parse: Callable[[bytes], _M], what: str) -> Request[_M]:
        """Return a length-prefixed message."""
        (size,) = _LENGTH.unpack((yield from self.read(position, _LENGTH.size, what)).tobytes())
        data = yield from self.read(position + _LENGTH.size, size, what)
        try:
            return parse(data.tobytes())
        except (DecodeError, UnicodeDecodeError, ValueError) as error:
            raise CorruptError(f"{what} is not a protobuf message", where=self.source.path) from error


def _first_row(metadata: file_pb2.Metadata, manifest: table_pb2.Manifest, ids: list[int], batches: int) -> int:
    """Return the field id of the first row of the page table. It is 0 if a table from id 0 ends at the manifest."""
    space = metadata.manifest_position - metadata.page_table_position
    has_more = metadata.HasField("statistics") or any(f.HasField("dictionary") for f in manifest.fields)
    return 0 if not has_more and batches and space == (max(ids) + 1) * batches * _ENTRY else min(ids)


def _bounds(metadata: file_pb2.Metadata, source: ByteSource) -> Int64s:
    bounds = np.array(metadata.batch_offsets or [0], np.int64)
    if bounds[0] != 0 or (np.diff(bounds) < 0).any() or bounds[-1] > ROW_OFFSETS:
        raise CorruptError(
            "invalid row offsets of the batches", where=source.path, expected="offsets that ascend from 0"
        )
    return bounds
