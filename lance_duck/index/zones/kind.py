"""The index kinds of zone maps and Bloom filters. `layout` describes the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.arguments import refuse_unknown
from lance_duck.arrow.types import has_offsets
from lance_duck.encoding.bloom import blocks_for
from lance_duck.errors import InvalidInputError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, IndexKind, MergedKind, MergeInput
from lance_duck.index.query import Among, Except, Null, Query
from lance_duck.index.zones.bounds import answered_by_bounds
from lance_duck.index.zones.build import collect, write_filters
from lance_duck.index.zones.layout import DEFAULT_PROBABILITY, DEFAULT_ROWS, ITEMS, PROBABILITY, ROWS_PER_ZONE
from lance_duck.index.zones.merge import follow_filters, moved_zones
from lance_duck.index.zones.open import BloomFilterFile, ZoneMapFile
from lance_duck.index.zones.search import BloomFilterIndex, ZoneMapIndex
from lance_duck.index.zones.values import has_hash, is_comparable
from lance_duck.index.zones.write import FilterWriter, write_zone_map
from lance_duck.index.zones.zones import ZoneStatistics
from lance_duck.rows.row_set import RowSet

USE_SEEDS: Final = "use_seeds"
_MAX_ROWS: Final = (1 << 63) - 1


class ZoneMapKind(MergedKind):
    """The kind of zone maps. Zones follow moved rows."""

    name: str = "ZoneMap"
    type_url: str = "/lance.table.ZoneMapIndexDetails"
    versions: range = range(1)
    rows_by: str = "address"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether values of a storage type have an order."""
        return is_comparable(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether bounds restrict the rows that satisfy a query."""
        return self.supports(type_) and answered_by_bounds(query, has_offsets(type_))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> ZoneMapIndex:
        """Open a segment and read its zones."""
        return ZoneMapIndex(ZoneMapFile(files, type_), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from new rows and other segments' zones."""
        size, seeds = self._parameters(options)
        if parts and ROWS_PER_ZONE not in options.parameters:
            size = parts[0].index.file.rows_per_zone
        pieces, sets = [], []
        for part in parts:
            moved = moved_zones(part.index.file.statistics, part.index.nulls, part.follow, size)
            pieces.append(moved[0])
            sets.append(moved[1])
        if rows is not None:
            new, nulls = collect(rows, size, options.progress)
            pieces.append(new)
            sets.append(nulls)
        return write_zone_map(writer, ZoneStatistics.concat(pieces), RowSet.union(sets), size, seeds)

    def _parameters(self, options: BuildOptions) -> tuple[int, bool]:
        _check_parameters(options, self.name, (ROWS_PER_ZONE, USE_SEEDS))
        seeds = options.parameters.get(USE_SEEDS)
        if seeds is not None and not isinstance(seeds, bool):
            raise InvalidInputError(f"parameter {USE_SEEDS}", expected="a bool", found=repr(seeds))
        return _whole_number(options, ROWS_PER_ZONE, DEFAULT_ROWS), bool(seeds)


class BloomFilterKind(MergedKind):
    """The kind of Bloom filter indexes. Filters follow moved rows."""

    name: str = "BloomFilter"
    type_url: str = "/lance.index.pb.BloomFilterIndexDetails"
    versions: range = range(1)
    rows_by: str = "address"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether values of a storage type have a hash."""
        return has_hash(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return True for queries for nulls, and for equality with values."""
        inner = query.query if isinstance(query, Except) else query
        return has_hash(type_) and (isinstance(inner, Null) or isinstance(query, Among))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BloomFilterIndex:
        """Open a segment, without reading its filters yet."""
        return BloomFilterIndex(BloomFilterFile(files), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from new rows and other segments' filters."""
        defaults = (DEFAULT_ROWS, DEFAULT_PROBABILITY)
        if parts:
            defaults = (parts[0].index.file.number_of_items, parts[0].index.file.probability)
        items, probability = _parameters(options, *defaults)
        filters = FilterWriter(writer, items, probability)
        nulls = [follow_filters(part.index.file, part.follow, filters, items) for part in parts]
        if rows is not None:
            nulls.append(write_filters(rows, filters, items, blocks_for(items, probability), options.progress))
        filters.finish(RowSet.union(nulls))
        return Details(0)


def _parameters(options: BuildOptions, items: int, probability: float) -> tuple[int, float]:
    _check_parameters(options, "BloomFilter", (ITEMS, PROBABILITY))
    value: Any = options.parameters.get(PROBABILITY, probability)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InvalidInputError(f"parameter {PROBABILITY}", expected="at least 0 and below 1", found=repr(value))
    return _whole_number(options, ITEMS, items), float(value)


def _whole_number(options: BuildOptions, name: str, default: int) -> int:
    """Return the row count that a parameter specifies.

    Raises:
        InvalidInputError: The parameter is not a positive integer.
    """
    value: Any = options.parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_ROWS:
        raise InvalidInputError(f"parameter {name}", expected="a positive integer", found=repr(value))
    return value


def _check_parameters(options: BuildOptions, kind: str, names: tuple[str, ...]) -> None:
    """Check that a kind supports all given parameters.

    Raises:
        InvalidInputError: The kind does not support one of the parameters.
    """
    refuse_unknown(options.parameters, names, f"index of kind {kind}", "parameter")


ZONE_MAP: Final[IndexKind] = ZoneMapKind()
BLOOM_FILTER: Final[IndexKind] = BloomFilterKind()
