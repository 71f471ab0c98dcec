"""Writes the files of zone maps and Bloom filters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_duck.encoding.bloom import Words
from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentWriter
from lance_duck.index.kind import Details
from lance_duck.index.zones.layout import (
    BLOOM_FILTER_FILE,
    BOUNDS,
    COLUMNS,
    COUNTS,
    FILTER_SCHEMA,
    ITEMS_KEY,
    NULL_BITMAP,
    PROBABILITY_KEY,
    ROWS_PER_ZONE,
    ZONE_MAP_FILE,
)
from lance_duck.index.zones.zones import Zones, ZoneStatistics
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map
from lance_duck.wire.pb import index_pb2


def write_zone_map(writer: SegmentWriter, statistics: ZoneStatistics, nulls: RowSet, size: int, seeds: bool) -> Details:
    """Write a zone map file from the statistics of zones in any order. Returns the details of the segment."""
    statistics = statistics.take(np.argsort(statistics.zones.first, kind="stable"))
    type_ = statistics.low.type
    bounds = [pa.field(name, type_) for name in BOUNDS]
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in COUNTS]
    extents = [pa.field(name, pa.uint64(), nullable=False) for name in COLUMNS]
    schema = pa.schema([*bounds, *counts, *extents], {ROWS_PER_ZONE: str(size)})
    file = writer.create(ZONE_MAP_FILE, schema)
    for batch in _batches(statistics, schema):
        file.write(batch)
    file.add_schema_metadata(NULL_BITMAP, str(file.add_global_buffer(row_address_map(nulls))))
    writer.add(ZONE_MAP_FILE, file)
    details = index_pb2.ZoneMapIndexDetails(rows_per_zone=size, use_seeds=seeds, has_null_bitmap=True)
    return Details(0, details.SerializeToString())


def _batches(statistics: ZoneStatistics, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    zones = statistics.zones
    numbers = (statistics.nulls, statistics.nans, zones.fragments, zones.offsets, zones.length)
    types = [field.type for field in schema][2:]
    arrays = [pa.array(column).cast(type_) for column, type_ in zip(numbers, types, strict=True)]
    yield pa.RecordBatch.from_arrays([statistics.low, statistics.high, *arrays], schema=schema)


class FilterWriter:
    """Writes zone filters, a few at a time.

    Args:
        writer: Writer of the segment.
        items: Row count of a zone.
        probability: Probability of a false positive.
    """

    def __init__(self, writer: SegmentWriter, items: int, probability: float) -> None:
        text = np.format_float_positional(probability, trim="-")
        schema = FILTER_SCHEMA.with_metadata({ITEMS_KEY: str(items), PROBABILITY_KEY: text})
        self._segment = writer
        self._file = writer.create(BLOOM_FILTER_FILE, schema)
        self._waiting: list[tuple[int, int, bool, bytes]] = []
        self._bytes = 0

    def add(self, first: int, length: int, has_null: bool, words: Words) -> None:
        """Append a zone.

        Args:
            first: Address of the first row.
            length: Number of offsets that the zone spans.
            has_null: Whether a value is null.
            words: Filter, uint32 (blocks, 8).
        """
        data = words.tobytes()
        self._waiting.append((first, length, has_null, data))
        self._bytes += len(data)
        if self._bytes >= INDEX_BLOCK_BYTES:
            self._flush()

    def finish(self, nulls: RowSet) -> None:
        """Write the pending zones and the null rows, and publish the file."""
        self._flush()
        self._file.add_schema_metadata(NULL_BITMAP, str(self._file.add_global_buffer(row_address_map(nulls))))
        self._segment.add(BLOOM_FILTER_FILE, self._file)

    def _flush(self) -> None:
        if not self._waiting:
            return
        first, length, has_null, data = zip(*self._waiting, strict=True)
        zones = Zones(np.array(first, np.uint64), np.array(length, np.int64))
        extents = (zones.fragments, zones.offsets, zones.length.astype(np.uint64))
        arrays = [*map(pa.array, extents), pa.array(has_null), pa.array(data, pa.binary())]
        self._file.write(pa.RecordBatch.from_arrays(arrays, schema=FILTER_SCHEMA))
        self._waiting, self._bytes = [], 0
