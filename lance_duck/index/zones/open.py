"""The open files of zone maps and of Bloom filters. Zone maps are completely in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from lance_duck.encoding.bloom import BLOCK_BYTES, Hashes, Words, blocks_for, may_hold_any
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.files import INDEX_BLOCK_BYTES, SegmentFile, SegmentReader
from lance_duck.index.zones.costs import FILTER_CACHE_BYTES
from lance_duck.index.zones.layout import (
    BLOOM_FILTER_FILE,
    BOUNDS,
    COLUMNS,
    COUNTS,
    DATA,
    DEFAULT_PROBABILITY,
    DEFAULT_ROWS,
    ITEMS_KEY,
    NULL_BITMAP,
    PROBABILITY_KEY,
    ROWS_PER_ZONE,
    ZONE_MAP_FILE,
)
from lance_duck.index.zones.zones import FRAGMENT_BITS, Ints, Mask, Zones, ZoneStatistics, null_counts
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map
from lance_duck.wire.limits import ROW_OFFSETS


class ZoneMapFile:
    """A file of zones and their statistics, completely in memory.

    Attributes:
        statistics: Statistics of the zones, in ascending order of the zones.
        nulls: Rows whose value is null.
        rows_per_zone: Row count of a zone, except the last of a fragment.
        path: Path for error messages.

    Args:
        files: Files of the segment.
        type_: Storage type of the column.

    Raises:
        NotFoundError: The file is missing.
        CorruptError: The file contradicts itself, or its column does not have this type.
        UnsupportedError: The file does not record nulls.
    """

    def __init__(self, files: SegmentReader, type_: pa.DataType) -> None:
        file = files.open(ZONE_MAP_FILE)
        for name in BOUNDS:
            file.column(name, type_)
        for name in COUNTS:
            file.column(name, pa.uint32())
        zones, order = read_zones(file)
        self.path = file.path
        self.nulls = read_nulls(file, zones)
        low, high, nulls, nans = (column.take(pa.array(order)) for column in file.read([*BOUNDS, *COUNTS]))
        if nulls.null_count or nans.null_count:
            raise CorruptError("the zone counts contain a null", where=file.path)
        if (null_counts(self.nulls, zones) < _ints(nulls)).any():
            raise CorruptError("the null rows of a zone are missing from the null list", where=file.path)
        self.rows_per_zone = row_number(file, ROWS_PER_ZONE, DEFAULT_ROWS)
        self.statistics = ZoneStatistics(zones, low, high, _ints(nulls), _ints(nans))


class BloomFilterFile:
    """A file with one Bloom filter per zone. Filters are read at first use, and cached unless they are very large.

    Attributes:
        zones: Zones of the rows, in ascending order.
        nulls: Rows whose value is null.
        number_of_items: Row count of a zone, except the last of a fragment.
        probability: Probability of a false positive, which determines the size of new filters.
        blocks: Number of blocks in a new filter.

    Args:
        files: Files of the segment.

    Raises:
        NotFoundError: The file is missing.
        CorruptError: The file contradicts itself.
        UnsupportedError: The file does not record nulls.
    """

    def __init__(self, files: SegmentReader) -> None:
        file = files.open(BLOOM_FILTER_FILE)
        file.column(DATA, pa.binary())
        self.zones, self._order = read_zones(file)
        self.nulls = read_nulls(file, self.zones)
        self.number_of_items = row_number(file, ITEMS_KEY, DEFAULT_ROWS)
        self.probability = _probability(file)
        self.blocks = blocks_for(self.number_of_items, self.probability)
        self._file = file
        at_once = max(1, INDEX_BLOCK_BYTES // (self.blocks * BLOCK_BYTES))
        self._parts = [slice(i, min(i + at_once, file.num_rows)) for i in range(0, file.num_rows, at_once)]
        self._keeps = file.num_rows * self.blocks * BLOCK_BYTES <= FILTER_CACHE_BYTES
        self._filters: dict[int, list[tuple[Ints, Words]]] = {}

    def may_hold(self, hashes: Hashes) -> Mask:
        """Return a mask of the zones whose filters may contain at least one of the hashes."""
        may = np.zeros(len(self.zones), np.bool_)
        if len(hashes):
            for number, part in enumerate(self._parts):
                for places, words in self._words(number, part):
                    may[part.start + places] = may_hold_any(words, hashes)
        return may[self._order]

    def filters(self, places: Ints) -> list[tuple[Ints, Words]]:
        """Return the filters of zones, grouped by size: their positions in `places`, and words (filters, blocks, 8)."""
        filter_numbers, back = np.unique(self._order[places], return_inverse=True)
        (data,) = self._file.read([DATA], filter_numbers)
        return list(as_words(data.take(pa.array(back)), self._file.path))

    def prewarm(self) -> None:
        """Read all filters, if they are small enough to be cached."""
        if self._keeps:
            for number, part in enumerate(self._parts):
                self._words(number, part)

    @property
    def nbytes(self) -> int:
        """Approximate size of the cached filters and the zones, in bytes."""
        filters = sum(words.nbytes for page in tuple(self._filters.values()) for _, words in page)
        return filters + 24 * len(self.zones)

    def _words(self, number: int, part: slice) -> list[tuple[Ints, Words]]:
        filters = self._filters.get(number)
        if filters is None:
            (data,) = self._file.read([DATA], part)
            filters = list(as_words(data, self._file.path))
            if self._keeps:
                self._filters[number] = filters
        return filters


def read_zones(file: SegmentFile) -> tuple[Zones, Ints]:
    """Read the extents of zones. Returns the zones in ascending order, and the row of each zone in the file.

    Raises:
        CorruptError: A zone is empty, or extends past the largest offset of a fragment.
    """
    for name in COLUMNS:
        file.column(name, pa.uint64())
    columns = file.read(COLUMNS)
    if any(column.null_count for column in columns):
        raise CorruptError("a zone extent contains a null", where=file.path)
    fragment, start, length = (column.to_numpy() for column in columns)
    limit = np.uint64(ROW_OFFSETS)
    if ((fragment >= limit) | (start >= limit) | (length > limit) | (length == 0) | (start + length > limit)).any():
        raise CorruptError("invalid zone extent", where=file.path, expected=f"1 … {ROW_OFFSETS} rows of a fragment")
    first = fragment << FRAGMENT_BITS | start
    order = np.argsort(first, kind="stable")
    return Zones(first[order], length[order].astype(np.int64)), order


def read_nulls(file: SegmentFile, zones: Zones) -> RowSet:
    """Read the rows that are null.

    Raises:
        UnsupportedError: The file does not record nulls. Its writer is old enough to store wrong zones for fragments
            with deleted rows.
        CorruptError: The record of nulls is corrupt.
    """
    number = file.metadata.get(NULL_BITMAP)
    if number is None:
        raise UnsupportedError(
            "the zones were written by an early version that does not record nulls",
            where=file.path,
            remedy="create the index again",
        )
    if not number.isdecimal() or not number.isascii() or len(number) > 9:
        raise CorruptError(f"metadata {NULL_BITMAP!r} is not a number", where=file.path, found=repr(number))
    return read_row_address_map(file.global_buffer(int(number)), file.path, zones.row_bound)


def row_number(file: SegmentFile, key: str, default: int) -> int:
    """Return the row count that a metadata entry stores.

    Raises:
        CorruptError: The entry is not a positive integer.
    """
    text = file.metadata.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text)):
        raise CorruptError(f"metadata {key!r} is not a positive integer", where=file.path, found=repr(text))
    return int(text)


def _ints(column: pa.Array) -> Ints:
    numbers: Ints = column.to_numpy().astype(np.int64)
    return numbers


def _probability(file: SegmentFile) -> float:
    text = file.metadata.get(PROBABILITY_KEY, str(DEFAULT_PROBABILITY))
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise CorruptError(
            f"metadata {PROBABILITY_KEY!r} is not a probability",
            where=file.path,
            expected="at least 0 and below 1",
            found=repr(text),
        )
    return value


def as_words(filters: pa.Array, where: str) -> Iterator[tuple[Ints, Words]]:
    """Yield filters grouped by size: their positions in the array, and their words (filters, blocks, 8).

    Raises:
        CorruptError: A filter is null, empty, or does not consist of whole blocks.
    """
    offsets = np.frombuffer(filters.buffers()[1], np.int32)[filters.offset : filters.offset + len(filters) + 1]
    sizes = np.diff(offsets)
    if filters.null_count or (sizes <= 0).any() or (sizes % BLOCK_BYTES).any():
        raise CorruptError("invalid size of a Bloom filter", where=where, expected=f"blocks of {BLOCK_BYTES} bytes")
    data = np.frombuffer(filters.buffers()[2], np.uint8)
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        if len(places) == len(sizes):
            joined = data[offsets[0] : offsets[-1]]
        else:
            joined = np.concatenate([data[offsets[i] : offsets[i + 1]] for i in places.tolist()])
        words = np.ascontiguousarray(joined).view("<u4") if joined.ctypes.data % 4 == 0 else joined.copy().view("<u4")
        yield places, words.reshape(len(places), size // BLOCK_BYTES, -1)
