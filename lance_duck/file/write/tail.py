"""The tail of a data file, after its pages: global buffers, checksums, column metadata, tables and footer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import pyarrow as pa
from google.protobuf.any_pb2 import Any
from google.protobuf.empty_pb2 import Empty

from lance_duck.checksums.container import block_bytes, block_size, mark
from lance_duck.checksums.digests import Digests
from lance_duck.checksums.sidecars import sidecar_mark
from lance_duck.encoding.layouts.page import EncodingDescription, Extent
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.file.physical import physical_columns
from lance_duck.file.reader import FOOTER, MAGIC
from lance_duck.store import Buffer, Sink
from lance_duck.wire.pb import encodings20_pb2, file2_pb2, file_pb2
from lance_duck.wire.schema import BLOB_KEY, BLOB_V2_SCAN, PACKED_KEY, Field, Schema
from lance_duck.wire.schema_write import metadata_to_proto, schema_from_arrow, schema_to_proto

COLUMN_URL: Final = "/lance.encodings.ColumnEncoding"
_FOOTER_VERSIONS: Final = MappingProxyType({(2, 0): (0, 3)})
_SCHEMAS: Final = 64
_ENCODINGS: Final = 256
_OF_VALUES: Final = encodings20_pb2.ColumnEncoding(values=Empty())
_OF_BLOBS: Final = encodings20_pb2.ColumnEncoding(blob=encodings20_pb2.Blob(inner=_OF_VALUES))
_VALUES: Final = EncodingDescription(COLUMN_URL, _OF_VALUES.SerializeToString())
_BLOB: Final = EncodingDescription(COLUMN_URL, _OF_BLOBS.SerializeToString())


@dataclass(slots=True)
class ColumnTail:
    """The metadata of a physical column, page by page."""

    message: file2_pb2.ColumnMetadata = field(default_factory=file2_pb2.ColumnMetadata)

    def add(self, page: EncodedPage, extents: Iterable[Extent]) -> None:
        """Add a page with the extents of its buffers."""
        places = list(extents)
        self.message.pages.add(
            buffer_offsets=[offset for offset, _ in places],
            buffer_sizes=[size for _, size in places],
            length=page.num_rows,
            encoding=_direct(page.encoding),
            priority=page.first_row,
        )


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a file.

    Attributes:
        schema: Columns of the file.
        version: (major, minor), as stored in manifests.
        columns: Physical columns of the file.
        global_buffers: Global buffers after the descriptor.
        num_rows: Number of rows.
        sidecars: Position and size of the sidecar digests, or None if the file does not have sidecars.
    """

    schema: Schema
    version: tuple[int, int]
    columns: Sequence[ColumnTail]
    global_buffers: Sequence[Buffer]
    num_rows: int
    sidecars: Extent | None = None


@dataclass(frozen=True, slots=True)
class WrittenBuffers:
    """Extents and digests of the buffers written so far.

    Attributes:
        extents: Position and size of each buffer.
        digests: Block digests of each buffer.
    """

    extents: list[Extent] = field(default_factory=list)
    digests: list[Digests] = field(default_factory=list)

    def add(self, position: int, data: Buffer, block_digests: Digests) -> None:
        """Add a buffer."""
        self.extents.append((position, memoryview(data).nbytes))
        self.digests.append(block_digests)


def write_tail(sink: Sink, append: Callable[[Buffer], int], contents: Contents, written: WrittenBuffers | None) -> None:
    """Write all bytes that follow the pages.

    Global buffer 0 is written after the other global buffers. A reader can then open the file from its end without
    reading the other buffers.

    Args:
        sink: The file.
        append: Writes a buffer to the file at a multiple of 64, and returns its position.
        contents: Contents of the file.
        written: Buffers that `append` wrote, or None to omit checksums.
    """
    places = [(append(buffer), memoryview(buffer).nbytes) for buffer in contents.global_buffers]
    start = append(b"")
    if written is None:
        sink.write(_tail(contents, places, _descriptor(contents), start))
        return
    size = block_size(len(written.extents), sum(map(len, written.digests)))
    marks = b"" if contents.sidecars is None else sidecar_mark(*contents.sidecars)
    tail = _tail(contents, places, _descriptor(contents) + marks + mark(start, size), start + size)
    sink.write(block_bytes(written.extents, written.digests, tail, start))
    sink.write(tail)


def _descriptor(contents: Contents) -> bytes:
    descriptor = file_pb2.FileDescriptor.FromString(_empty_descriptor(contents.schema))
    descriptor.length = contents.num_rows
    data: bytes = descriptor.SerializeToString()
    return data


@lru_cache(_SCHEMAS)
def _empty_descriptor(schema: Schema) -> bytes:
    """Return the descriptor of a file without rows."""
    descriptor = file_pb2.FileDescriptor()
    descriptor.schema.fields.extend(_descriptor_fields(schema))
    for key, value in metadata_to_proto(schema.metadata).items():
        descriptor.schema.metadata[key] = value
    data: bytes = descriptor.SerializeToString()
    return data


def _tail(contents: Contents, global_extents: Sequence[Extent], descriptor: bytes, position: int) -> bytes:
    """Return global buffer 0, which begins at `position`, and all bytes that follow it."""
    columns, version = contents.columns, contents.version
    blobs = _blob_columns(contents.schema, version)
    parts, extents = [descriptor], []
    end = start = position + len(descriptor)
    for index, column in enumerate(columns):
        column.message.encoding.CopyFrom(_direct(_BLOB if index in blobs else _VALUES))
        data = column.message.SerializeToString()
        extents.append((end, len(data)))
        parts.append(data)
        end += len(data)
    column_table, global_table = _table(extents), _table([(position, len(descriptor)), *global_extents])
    footer = (start, end, end + len(column_table), 1 + len(global_extents), len(columns))
    footer_bytes = FOOTER.pack(*footer, *_FOOTER_VERSIONS.get(version, version), MAGIC)
    return b"".join((*parts, column_table, global_table, footer_bytes))


def _table(extents: Iterable[Extent]) -> bytes:
    return b"".join(number.to_bytes(8, "little") for extent in extents for number in extent)


@lru_cache(_ENCODINGS)
def _direct(encoding: EncodingDescription) -> file2_pb2.Encoding:
    """Return the message of an encoding. It must not be changed, because columns share it."""
    packed = Any(type_url=encoding.type_url, value=encoding.value)
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=packed.SerializeToString()))


def _blob_columns(schema: Schema, version: tuple[int, int]) -> set[int]:
    """Return the physical columns of a 2.0 file that hold blob descriptors."""
    if version != (2, 0):
        return set()
    places = physical_columns(schema.fields, version)
    return {places[f.id] for f in schema.walk() if f.blob_version == 1 and f.id in places}


def _descriptor_fields(schema: Schema) -> list[file_pb2.Field]:
    """Return the descriptor's fields. A `lance.blob.v2` becomes a packed struct with the location of its bytes."""
    return schema_to_proto(Schema(tuple(_described(f) for f in schema.fields)))


def _described(f: Field) -> Field:
    if f.blob_version != 2:
        return Field(
            f.id, f.name, f.parent_id, f.logical_type, f.nullable, f.metadata, tuple(_described(c) for c in f.children)
        )
    metadata = MappingProxyType({BLOB_KEY: "true", PACKED_KEY: "true"})
    return Field(f.id, f.name, f.parent_id, f.logical_type, f.nullable, metadata, _DESCRIPTION)


_DESCRIPTION: Final = tuple(
    Field(-1, f.name, -1, f.logical_type, f.nullable, f.metadata)
    for f in schema_from_arrow(pa.schema(list(BLOB_V2_SCAN))).fields
)
