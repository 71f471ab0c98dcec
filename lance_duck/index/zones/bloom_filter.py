"""Bloom filters, one for every few thousand rows.

bloomfilter.lance, a row for each zone:
    fragment_id, zone_start, zone_length   as in `index.zones.zones`
    has_null            bool
    bloom_filter_data   binary, `encoding.bloom`, with the bytes of each value that is not null: numbers, dates and
                        times little-endian in their own width, texts as UTF-8
metadata
    bloomfilter_item         rows of a zone, except the last of a fragment; rows deleted before do not count
    bloomfilter_probability  decimal number; the size of a filter follows from both
    null_bitmap              as in `index.zones.zones`

details: BloomFilterIndexDetails, empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.encoding.bloom import BLOCK_BYTES, Words, blocks_for, may_hold_any
from lance_duck.errors import CorruptError, InternalError, InvalidInputError
from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentFile, SegmentReader, SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, IndexKind, MergeInput
from lance_duck.index.query import Among, Except, Null, Query
from lance_duck.index.zones.bloom_build import (
    DATA,
    SCHEMA,
    FilterWriter,
    as_words,
    followed_rows,
    joined_filters,
    write_filters,
)
from lance_duck.index.zones.bloom_values import has_hash, hashes_to_find
from lance_duck.index.zones.costs import FILTER_CACHE_BYTES
from lance_duck.index.zones.index import ZonedIndex, check_parameters, null_counts, row_number, whole_number
from lance_duck.index.zones.moved import follow_rows, follow_zones
from lance_duck.index.zones.zones import NULL_BITMAP, Ints, Mask, read_nulls, read_zones
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map

FILE: Final = "bloomfilter.lance"
ITEMS: Final = "number_of_items"
PROBABILITY: Final = "probability"

_ITEMS_KEY = "bloomfilter_item"
_PROBABILITY_KEY = "bloomfilter_probability"
_DEFAULT_ITEMS = 8192
_DEFAULT_PROBABILITY = 0.00057


class BloomFilterIndex(ZonedIndex):
    """An open segment of Bloom filters; the first search reads them, and caches them unless they are very large."""

    def __init__(self, file: SegmentFile, type_: pa.DataType) -> None:
        file.column(DATA, pa.binary())
        zones, order = read_zones(file)
        super().__init__(zones, read_nulls(file, zones), type_)
        self.number_of_items = row_number(file, _ITEMS_KEY, _DEFAULT_ITEMS)
        self.probability = _probability(file)
        self.blocks = blocks_for(self.number_of_items, self.probability)
        self._file = file
        self._order = order
        at_once = max(1, INDEX_BLOCK_BYTES // (self.blocks * BLOCK_BYTES))
        self._parts = [slice(i, min(i + at_once, file.num_rows)) for i in range(0, file.num_rows, at_once)]
        self._keeps = file.num_rows * self.blocks * BLOCK_BYTES <= FILTER_CACHE_BYTES
        self._filters: dict[int, list[tuple[Ints, Words]]] = {}

    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return the zones that may have a matching row, and no zones in which every row surely matches."""
        if not isinstance(query, Among):
            raise InternalError("query that filters do not answer", found=query)
        nothing = np.zeros(len(self.zones), np.bool_)
        hashes = hashes_to_find(query.values.cast(self.type))
        if hashes is None:
            return ~nothing, nothing
        may = np.zeros(len(self.zones), np.bool_)
        if len(hashes):
            for number, part in enumerate(self._parts):
                for places, words in self._words(number, part):
                    may[part.start + places] = may_hold_any(words, hashes)
        return may[self._order], nothing

    def filters(self, places: Ints) -> list[tuple[Ints, Words]]:
        """Return the filters of some zones, grouped by size: places in `places`, and words (filters, blocks, 8)."""
        filter_numbers, back = np.unique(self._order[places], return_inverse=True)
        (data,) = self._file.read([DATA], filter_numbers)
        return list(as_words(data.take(pa.array(back)), self._file.path))

    def statistics(self) -> dict[str, Any]:
        """Return the number of zones, and the parameters of their filters."""
        numbers = {ITEMS: self.number_of_items, PROBABILITY: self.probability}
        return {"type": "BloomFilter", "num_blocks": len(self.zones), **numbers}

    def prewarm(self) -> None:
        """Read the filters, if they are to be cached."""
        if self._keeps:
            for number, part in enumerate(self._parts):
                self._words(number, part)

    @property
    def nbytes(self) -> int:
        """Approximate bytes in memory."""
        filters = sum(words.nbytes for page in tuple(self._filters.values()) for _, words in page)
        return filters + 24 * len(self.zones) + self.nulls_nbytes

    def _words(self, number: int, part: slice) -> list[tuple[Ints, Words]]:
        filters = self._filters.get(number)
        if filters is None:
            (data,) = self._file.read([DATA], part)
            filters = list(as_words(data, self._file.path))
            if self._keeps:
                self._filters[number] = filters
        return filters


class BloomFilterKind:
    """The kind of Bloom filter indexes."""

    name = "BloomFilter"
    type_url = "/lance.index.pb.BloomFilterIndexDetails"
    versions = range(1)
    rows_by = "address"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether values of a storage type have a hash."""
        return has_hash(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a query is one for nulls, or for equality with values."""
        inner = query.query if isinstance(query, Except) else query
        return has_hash(type_) and (isinstance(inner, Null) or isinstance(query, Among))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BloomFilterIndex:
        """Open a segment; its filters are not read yet."""
        return BloomFilterIndex(files.open(FILE), type_)

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """Write a segment of rows."""
        items, probability = _parameters(options, _DEFAULT_ITEMS, _DEFAULT_PROBABILITY)
        return _write(writer, (), rows, items, probability, options)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of new rows and of the filters of other segments, which follow their rows."""
        defaults = (_DEFAULT_ITEMS, _DEFAULT_PROBABILITY)
        if parts:
            defaults = (parts[0].index.number_of_items, parts[0].index.probability)
        return _write(writer, parts, rows, *_parameters(options, *defaults), options)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row names, as filters follow their rows."""
        return True


BLOOM_FILTER: Final[IndexKind] = BloomFilterKind()


def _parameters(options: BuildOptions, items: int, probability: float) -> tuple[int, float]:
    check_parameters(options, "BloomFilter", (ITEMS, PROBABILITY))
    value: Any = options.parameters.get(PROBABILITY, probability)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
        raise InvalidInputError(f"parameter {PROBABILITY}", expected="at least 0 and below 1", found=repr(value))
    return whole_number(options, ITEMS, items), float(value)


def _write(
    writer: SegmentWriter,
    parts: Sequence[MergeInput],
    rows: pa.RecordBatchReader | None,
    items: int,
    probability: float,
    options: BuildOptions,
) -> Details:
    text = np.format_float_positional(probability, trim="-")
    file = writer.create(FILE, SCHEMA.with_metadata({_ITEMS_KEY: str(items), _PROBABILITY_KEY: text}))
    filters = FilterWriter(file)
    nulls = [_follow(part, filters, items) for part in parts]
    if rows is not None:
        nulls.append(write_filters(rows, filters, items, blocks_for(items, probability), options.progress))
    filters.flush()
    file.add_schema_metadata(NULL_BITMAP, str(file.add_global_buffer(row_address_map(RowSet.union(nulls)))))
    writer.add(FILE, file)
    return Details(0)


def _follow(part: MergeInput, writer: FilterWriter, rows_per_zone: int) -> RowSet:
    """Write the filters of a segment whose rows got new names; return its rows that are null, by their new names."""
    index: BloomFilterIndex = part.index
    moved = follow_zones(index.zones, part.follow)
    nulls = follow_rows(index.nulls, part.follow)
    groups = moved.zones.groups(moved.is_new, rows_per_zone)
    at_once = max(1, INDEX_BLOCK_BYTES // (index.blocks * BLOCK_BYTES))
    for begin in range(0, len(moved.zones), at_once):
        block = slice(begin, begin + at_once)
        for places, words in index.filters(moved.source[block]):
            positions = begin + places
            zones = followed_rows(moved.zones.first[positions], moved.zones.length[positions], groups[positions])
            has_null = (null_counts(nulls, zones) > 0).tolist()
            joined = joined_filters(words, groups[positions])
            for each in zip(zones.first.tolist(), zones.length.tolist(), has_null, joined, strict=True):
                writer.add(*each)
    return nulls


def _probability(file: SegmentFile) -> float:
    text = file.metadata.get(_PROBABILITY_KEY, str(_DEFAULT_PROBABILITY))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise CorruptError(f"metadata {_PROBABILITY_KEY!r}", where=file.path, expected="0 … 1", found=repr(text))
    return value
