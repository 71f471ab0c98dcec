"""Handmade data files of version 0.1, from Arrow batches without nulls."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from unit.encoding.hand_pages import Memory

from lance_duck.wire.pb import file_pb2, table_pb2
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_write import schema_from_arrow

Entries = list[tuple[int, int]]


@dataclass
class Built:
    """A file and the offsets of its parts."""

    source: Memory
    schema: Schema
    manifest: int
    metadata: int
    table: int
    pages: dict[int, Entries] = field(default_factory=dict)


def legacy_file(batches: Sequence[pa.RecordBatch], *, minor: int = 2, first_id: int = 0, table_from: int = -1) -> Built:
    """Build a file.

    Args:
        batches: Batches with one schema and equal dictionaries.
        minor: Minor version in the footer.
        first_id: Id of the first field.
        table_from: First field id in the page table; -1 for the lowest one.
    """
    source = Memory()
    schema = schema_from_arrow(batches[0].schema, first_id=first_id)
    protos = {f.id: _field_proto(f) for f in schema.walk()}
    pages: dict[int, Entries] = {i: [] for i in protos}
    for batch in batches:
        for top, array in zip(schema.fields, batch.columns, strict=True):
            for number, entry in _pages(source, top, array):
                pages[number].append(entry)
    low = min(protos) if table_from < 0 else table_from
    table = source.size
    for number in range(low, max(protos) + 1):
        for entry in pages.get(number) or [(0, 0)] * len(batches):
            source.data += struct.pack("<qq", *entry)
    for top, array in zip(schema.fields, batches[0].columns, strict=True):
        if pa.types.is_dictionary(array.type):
            position, length = _values(source, array.dictionary)
            protos[top.id].dictionary.offset, protos[top.id].dictionary.length = position, length
    manifest = _section(source, table_pb2.Manifest(fields=protos.values(), version=1))
    bounds = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    metadata = _section(
        source, file_pb2.Metadata(manifest_position=manifest, batch_offsets=bounds, page_table_position=table)
    )
    source.data += struct.pack("<QHH4s", metadata, 0, minor, b"LANC")
    return Built(source, schema, manifest, metadata, table, pages)


def _section(source: Memory, message: table_pb2.Manifest | file_pb2.Metadata) -> int:
    position, body = source.size, message.SerializeToString()
    source.data += struct.pack("<I", len(body)) + body
    return position


def _pages(source: Memory, top: Field, array: pa.Array) -> Iterator[tuple[int, tuple[int, int]]]:
    kind, number, children = array.type, top.id, top.children
    if pa.types.is_struct(kind):
        yield number, (0, 0)
        for i, child in enumerate(children):
            yield from _pages(source, child, array.field(i))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = array.offsets.to_numpy()
        position = source.size
        source.data += (offsets - offsets[0]).tobytes()
        yield number, (position, len(offsets))
        yield from _pages(source, children[0], array.flatten())
    elif pa.types.is_dictionary(kind):
        yield number, _values(source, array.indices)
    else:
        yield number, _values(source, array)


def _values(source: Memory, array: pa.Array) -> tuple[int, int]:
    """Append a page of values, and return its position and length."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        values = [v.encode() if isinstance(v, str) else v or b"" for v in array.to_pylist()]
        ends = source.size + np.cumsum([0, *map(len, values)])
        source.data += b"".join(values)
        position = source.size
        source.data += ends.astype("<i8").tobytes()
        return position, len(array)
    position = source.size
    items = array
    while pa.types.is_fixed_size_list(items.type):
        items = items.flatten()
    if pa.types.is_boolean(items.type):
        source.data += np.packbits(items.to_numpy(zero_copy_only=False), bitorder="little").tobytes()
    elif not pa.types.is_null(items.type):
        width = items.type.bit_width // 8
        source.data += items.buffers()[1].to_pybytes()[items.offset * width : (items.offset + len(items)) * width]
    return position, len(array)


def _field_proto(f: Field) -> file_pb2.Field:
    return file_pb2.Field(
        id=f.id,
        name=f.name,
        parent_id=f.parent_id,
        logical_type=f.logical_type,
        nullable=f.nullable,
    )
