"""Zone maps: least and greatest value of every few thousand rows.

zonemap.lance, a row for each zone:
    min, max      type of the column; null if all values are null. `max` is NaN if there is a NaN; if there is nothing
                  else, `min` is NaN, too, or null
    null_count    uint32
    nan_count     uint32
    fragment_id, zone_start, zone_length   as in `index.zones.zones`
metadata
    rows_per_zone  rows of a zone, except the last of a fragment; rows deleted before do not count
    null_bitmap    as in `index.zones.zones`

details: ZoneMapIndexDetails. With `use_seeds`, other writers also keep the zones of appended rows in the data files,
for the next segment; this package does not use them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import has_offsets
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.index.files import SegmentFile, SegmentReader, SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, IndexKind, MergeInput
from lance_duck.index.query import Query
from lance_duck.index.zones.bounds import answered_by_bounds, read_bounds, zone_masks
from lance_duck.index.zones.index import ZonedIndex, check_parameters, null_counts, row_number, whole_number
from lance_duck.index.zones.ordering import is_comparable
from lance_duck.index.zones.statistics import ZoneStatistics, collect, moved_zones
from lance_duck.index.zones.zones import COLUMNS, NULL_BITMAP, Ints, Mask, read_nulls, read_zones
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map
from lance_duck.wire.pb import index_pb2

FILE: Final = "zonemap.lance"
ROWS_PER_ZONE: Final = "rows_per_zone"
USE_SEEDS: Final = "use_seeds"

_DEFAULT_ROWS = 8192
_COUNTS = ("null_count", "nan_count")


class ZoneMapIndex(ZonedIndex):
    """An open zone map, wholly in memory.

    Attributes:
        statistics_of_zones: Statistics of the zones, in the order of `zones`.
        rows_per_zone: Rows of a zone, except the last of a fragment.
    """

    def __init__(self, file: SegmentFile, type_: pa.DataType) -> None:
        for name in ("min", "max"):
            file.column(name, type_)
        for name in _COUNTS:
            file.column(name, pa.uint32())
        zones, order = read_zones(file)
        super().__init__(zones, read_nulls(file, zones), type_)
        low, high, nulls, nans = (column.take(pa.array(order)) for column in file.read(["min", "max", *_COUNTS]))
        if nulls.null_count or nans.null_count:
            raise CorruptError("null in the counts of a zone", where=file.path)
        if (null_counts(self.nulls, zones) < _ints(nulls)).any():
            raise CorruptError("nulls of a zone that are not in the list of all", where=file.path)
        self.rows_per_zone = row_number(file, ROWS_PER_ZONE, _DEFAULT_ROWS)
        self.statistics_of_zones = ZoneStatistics(zones, low, high, _ints(nulls), _ints(nans))
        self._bounds = read_bounds(low, high, _ints(nulls), _ints(nans), zones.length, file.path)

    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return the zones in which some row may satisfy a query, and those in which every row but nulls does."""
        return zone_masks(self._bounds, query)

    def statistics(self) -> dict[str, Any]:
        """Return the number of zones, and the rows of a zone."""
        return {"num_zones": len(self.zones), ROWS_PER_ZONE: self.rows_per_zone}

    def prewarm(self) -> None:
        """Do nothing: a zone map is read when it is opened."""

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        statistics = self.statistics_of_zones
        arrays = (statistics.low.nbytes, statistics.high.nbytes, self._bounds.nbytes, 32 * len(self.zones))
        return sum(arrays) + self.nulls_nbytes


class ZoneMapKind:
    """The kind of zone maps."""

    name = "ZoneMap"
    type_url = "/lance.table.ZoneMapIndexDetails"
    versions = range(1)
    rows_by = "address"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether values of a storage type have an order."""
        return is_comparable(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether bounds restrict the rows that satisfy a query."""
        return self.supports(type_) and answered_by_bounds(query, has_offsets(type_))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> ZoneMapIndex:
        """Open a segment and read its zones."""
        return ZoneMapIndex(files.open(FILE), type_)

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment of rows."""
        size, seeds = self._parameters(options)
        statistics, nulls = collect(rows, size, options.progress)
        return _write(writer, statistics, nulls, size, seeds)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of new rows and of the zones of other segments, which follow their rows."""
        size, seeds = self._parameters(options)
        if parts and ROWS_PER_ZONE not in options.parameters:
            size = parts[0].index.rows_per_zone
        pieces, sets = [], []
        for part in parts:
            moved = moved_zones(part.index.statistics_of_zones, part.index.nulls, part.follow, size)
            pieces.append(moved[0])
            sets.append(moved[1])
        if rows is not None:
            new, nulls = collect(rows, size, options.progress)
            pieces.append(new)
            sets.append(nulls)
        return _write(writer, ZoneStatistics.concat(pieces), RowSet.union(sets), size, seeds)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row names, as zones follow their rows."""
        return True

    def _parameters(self, options: BuildOptions) -> tuple[int, bool]:
        check_parameters(options, self.name, (ROWS_PER_ZONE, USE_SEEDS))
        seeds = options.parameters.get(USE_SEEDS)
        if seeds is not None and not isinstance(seeds, bool):
            raise InvalidInputError(f"parameter {USE_SEEDS}", expected="a bool", found=repr(seeds))
        return whole_number(options, ROWS_PER_ZONE, _DEFAULT_ROWS), bool(seeds)


ZONE_MAP: Final[IndexKind] = ZoneMapKind()


def _write(writer: SegmentWriter, statistics: ZoneStatistics, nulls: RowSet, size: int, seeds: bool) -> Details:
    statistics = statistics.take(np.argsort(statistics.zones.first, kind="stable"))
    type_ = statistics.low.type
    counts = [pa.field(name, pa.uint32(), nullable=False) for name in _COUNTS]
    extents = [pa.field(name, pa.uint64(), nullable=False) for name in COLUMNS]
    schema = pa.schema([pa.field("min", type_), pa.field("max", type_), *counts, *extents], {ROWS_PER_ZONE: str(size)})
    file = writer.create(FILE, schema)
    for batch in _batches(statistics, schema):
        file.write(batch)
    file.add_schema_metadata(NULL_BITMAP, str(file.add_global_buffer(row_address_map(nulls))))
    writer.add(FILE, file)
    details = index_pb2.ZoneMapIndexDetails(rows_per_zone=size, use_seeds=seeds, has_null_bitmap=True)
    return Details(0, details.SerializeToString())


def _batches(statistics: ZoneStatistics, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    zones = statistics.zones
    numbers = (statistics.nulls, statistics.nans, zones.fragments, zones.offsets, zones.length)
    types = [field.type for field in schema][2:]
    arrays = [pa.array(column).cast(type_) for column, type_ in zip(numbers, types, strict=True)]
    yield pa.RecordBatch.from_arrays([statistics.low, statistics.high, *arrays], schema=schema)


def _ints(column: pa.Array) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64)
    return numbers
