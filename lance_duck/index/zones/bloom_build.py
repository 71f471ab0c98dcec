"""Building Bloom filters of zones, from rows, and from other filters whose rows moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from lance_duck.encoding.bloom import BLOCK_BYTES, Hashes, Words, insert, new_filter
from lance_duck.errors import CorruptError
from lance_duck.file.write.writer import FileWriter
from lance_duck.index.files import INDEX_BLOCK_BYTES
from lance_duck.index.kind import Rows
from lance_duck.index.zones.bloom_values import hashes_of
from lance_duck.index.zones.zones import COLUMNS, Ints, Mask, Zones, cut_batches
from lance_duck.rows.row_set import RowSet

HAS_NULL = "has_null"
DATA = "bloom_filter_data"


SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.uint64(), nullable=False) for name in COLUMNS),
        pa.field(HAS_NULL, pa.bool_(), nullable=False),
        pa.field(DATA, pa.binary(), nullable=False),
    ]
)


class FilterWriter:
    """A writer of the filters of zones, a few at a time.

    Args:
        file: File with `SCHEMA`; the caller finishes it.
    """

    def __init__(self, file: FileWriter) -> None:
        self._file = file
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
            self.flush()

    def flush(self) -> None:
        """Write the zones that wait."""
        if not self._waiting:
            return
        first, length, has_null, data = zip(*self._waiting, strict=True)
        zones = Zones(np.array(first, np.uint64), np.array(length, np.int64))
        extents = (zones.fragments, zones.offsets, zones.length.astype(np.uint64))
        arrays = [*map(pa.array, extents), pa.array(has_null), pa.array(data, pa.binary())]
        self._file.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        self._waiting, self._bytes = [], 0


def write_filters(
    rows: pa.RecordBatchReader,
    writer: FilterWriter,
    rows_per_zone: int,
    blocks: int,
    progress: Callable[[int], None] | None = None,
) -> RowSet:
    """Write the filters of the zones of rows in table order; return the rows that are null."""
    zone = _Zone(blocks)
    nulls: list[RowSet] = []
    for values, names, starts, numbers in cut_batches(rows, rows_per_zone, nulls, progress):
        present = values.is_valid().to_numpy(zero_copy_only=False)
        hashes = hashes_of(values)
        stops = np.append(starts[1:], len(names))
        for begin, end, number in zip(starts.tolist(), stops.tolist(), numbers.tolist(), strict=True):
            if number != zone.number:
                zone.write(writer)
                zone.begin(number, int(names[begin]))
            zone.take(int(names[end - 1]), hashes[begin:end], present[begin:end])
    zone.write(writer)
    return RowSet.union(nulls)


class _Zone:
    """The zone that rows are being added to."""

    def __init__(self, blocks: int) -> None:
        self._blocks = blocks
        self.number = -1
        self._first = self._last = 0
        self._has_null = False
        self._words = new_filter(0)

    def begin(self, number: int, first: int) -> None:
        self.number, self._first, self._has_null = number, first, False
        self._words = new_filter(self._blocks)

    def take(self, last: int, hashes: Hashes, present: Mask) -> None:
        self._last = last
        all_ = bool(present.all())
        self._has_null |= not all_
        insert(self._words, hashes if all_ else hashes[present])

    def write(self, writer: FilterWriter) -> None:
        if self.number >= 0:
            writer.add(self._first, self._last - self._first + 1, self._has_null, self._words)


def as_words(filters: pa.Array, where: str) -> Iterator[tuple[Ints, Words]]:
    """Yield filters grouped by size: their places in the array, and their words (filters, blocks, 8).

    Raises:
        CorruptError: A filter is null, empty, or does not consist of whole blocks.
    """
    offsets = np.frombuffer(filters.buffers()[1], np.int32)[filters.offset : filters.offset + len(filters) + 1]
    sizes = np.diff(offsets)
    if filters.null_count or (sizes <= 0).any() or (sizes % BLOCK_BYTES).any():
        raise CorruptError("Bloom filter", where=where, expected=f"blocks of {BLOCK_BYTES} bytes")
    data = np.frombuffer(filters.buffers()[2], np.uint8)
    for size in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == size)
        if len(places) == len(sizes):
            joined = data[offsets[0] : offsets[-1]]
        else:
            joined = np.concatenate([data[offsets[i] : offsets[i + 1]] for i in places.tolist()])
        words = np.ascontiguousarray(joined).view("<u4") if joined.ctypes.data % 4 == 0 else joined.copy().view("<u4")
        yield places, words.reshape(len(places), size // BLOCK_BYTES, -1)


def joined_filters(words: Words, groups: Ints) -> Words:
    """Return one filter for the filters of each group; groups ascend."""
    begins = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    joined: Words = words if len(begins) == len(groups) else np.bitwise_or.reduceat(words, begins, axis=0)
    return joined


def followed_rows(first: Rows, length: Ints, groups: Ints) -> Zones:
    """Return one zone for the adjacent zones of each group."""
    begins = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    last = np.append(begins[1:], len(groups)) - 1
    return Zones(first[begins], (first[last] - first[begins]).astype(np.int64) + length[last])
