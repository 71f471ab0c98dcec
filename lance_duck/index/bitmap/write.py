"""Writes the file of an index from sorted entries."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa

from lance_duck.index.bitmap.entries import BitmapEntries
from lance_duck.index.bitmap.layout import BITMAPS, FILE, KEYS, STATISTICS
from lance_duck.index.files import SegmentWriter


def write_bitmap_file(
    entries: Iterable[BitmapEntries],
    type_: pa.DataType,
    writer: SegmentWriter,
    buffers: Iterable[tuple[str, bytes]] = (),
    metadata: Iterable[tuple[str, str]] = (),
) -> None:
    """Write the file of an index.

    Args:
        entries: Entries in file order, with distinct keys.
        type_: Type of the keys.
        writer: Writer of the segment.
        buffers: Global buffers, each with the metadata key that stores its index.
        metadata: Additional metadata entries.

    Raises:
        CorruptError: Entries of another segment are corrupt.
        StoreError: The disk or the service failed.
    """
    schema = pa.schema([pa.field(KEYS, type_), pa.field(BITMAPS, pa.binary())])
    file = writer.create(FILE, schema)
    for name, data in buffers:
        file.add_schema_metadata(name, str(file.add_global_buffer(data)))
    for block in entries:
        file.write(pa.record_batch([block.keys, block.maps], schema))
    for name, value in metadata:
        file.add_schema_metadata(name, value)
    file.add_schema_metadata(STATISTICS, json.dumps({"num_bitmaps": file.num_rows}, separators=(",", ":")))
    writer.add(FILE, file)
