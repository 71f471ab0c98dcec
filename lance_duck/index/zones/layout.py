"""The files of zone maps and Bloom filters, with one row per zone. A zone is a row range of one fragment.

zonemap.lance
    min, max      type of the column; null if all values are null. `max` is NaN if the zone contains a NaN. `min` is
                  NaN or null if all values are null or NaN
    null_count    uint32
    nan_count     uint32
    fragment_id, zone_start, zone_length   see below
    metadata rows_per_zone   row count of a zone, except the last of a fragment; rows deleted before the build do not
                             count

bloomfilter.lance
    fragment_id, zone_start, zone_length   see below
    has_null            bool
    bloom_filter_data   binary, `encoding.bloom`, with the bytes of each value that is not null: numbers, dates and
                        times little-endian in their stored width, strings as UTF-8
    metadata bloomfilter_item          like rows_per_zone
    metadata bloomfilter_probability   decimal number; both metadata entries together determine the size of a filter

both files
    fragment_id   uint64
    zone_start    uint64, offset of the first row
    zone_length   uint64, number of offsets from the first to the last row, including deleted rows in between
    metadata null_bitmap   number of the global buffer with the row address map of all nulls

Details are a ZoneMapIndexDetails or an empty BloomFilterIndexDetails message. The version is 0. Rows are stored by
address. With `use_seeds`, other writers also store the zones of appended rows in the data files, for the next segment.
This package does not use these zones.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

COLUMNS: Final = ("fragment_id", "zone_start", "zone_length")
NULL_BITMAP: Final = "null_bitmap"
ZONE_MAP_FILE: Final = "zonemap.lance"
ROWS_PER_ZONE: Final = "rows_per_zone"
BOUNDS: Final = ("min", "max")
COUNTS: Final = ("null_count", "nan_count")
BLOOM_FILTER_FILE: Final = "bloomfilter.lance"
ITEMS_KEY: Final = "bloomfilter_item"
PROBABILITY_KEY: Final = "bloomfilter_probability"
HAS_NULL: Final = "has_null"
DATA: Final = "bloom_filter_data"
FILTER_SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, pa.uint64(), nullable=False) for name in COLUMNS),
        pa.field(HAS_NULL, pa.bool_(), nullable=False),
        pa.field(DATA, pa.binary(), nullable=False),
    ]
)

DEFAULT_ROWS: Final = 8192
DEFAULT_PROBABILITY: Final = 0.00057
"""Default row count of a zone and default probability of a false positive. They apply to new segments, and to files
without these metadata entries."""

ITEMS: Final = "number_of_items"
PROBABILITY: Final = "probability"
"""Names of ITEMS_KEY and PROBABILITY_KEY in Bloom filter parameters and statistics."""
