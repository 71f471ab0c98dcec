"""The open file of an index: keys in memory, and bitmaps that are read on demand. `layout` describes the file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.bitmap.costs import BITMAP_BYTES, COUNTED_BITMAPS, FIRST_BITMAPS, SMALL_BITMAP
from lance_duck.index.bitmap.entries import BitmapEntries, map_bytes
from lance_duck.index.bitmap.keys import BitmapKeys, Int64s, written_order
from lance_duck.index.bitmap.layout import BITMAPS, FILE, KEYS, LIST_NULLS
from lance_duck.index.files import INDEX_BLOCK_BYTES, INDEX_BLOCK_ROWS, SegmentFile, SegmentReader
from lance_duck.rows.costs import ROW_SET_BYTES
from lance_duck.rows.row_maps import read_array_maps
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map


@dataclass(frozen=True)
class Present:
    """The rows with a key that is not null.

    Attributes:
        rows: The rows.
        is_disjoint: Whether each row has exactly one key. If not, rows may also have keys from before an update.
    """

    rows: RowSet
    is_disjoint: bool


class BitmapFile:
    """A file of keys and their rows. Safe to use from several threads.

    Attributes:
        keys: Keys of the file.
        metadata: Metadata of the file's schema.

    Args:
        files: Files of the segment.
        type_: Type of the keys.

    Raises:
        CorruptError: The keys do not have this type.
        NotFoundError: The file does not exist.
    """

    def __init__(self, files: SegmentReader, type_: pa.DataType) -> None:
        self._file: SegmentFile = files.open(FILE)
        self._file.column(KEYS, type_)
        self._file.column(BITMAPS, pa.binary())
        self.metadata = self._file.metadata
        self.path = self._file.path
        self.keys = BitmapKeys(self._file.read([KEYS])[0])
        self._row_sets: SizedCache[tuple[RowSet, int]] = SizedCache(BITMAP_BYTES, lambda entry: entry[1])
        self._present: Present | None = None

    def rows(self, places: Int64s) -> RowSet:
        """Return the union of the rows of the given keys.

        Args:
            places: Ascending positions of the keys in the file.

        Raises:
            CorruptError: A bitmap is corrupt.
        """
        cached, new_places = self._look(places)
        for part in self._read(new_places):
            cached.extend(self._sets(part)[0])
        return RowSet.union(cached)

    def each(self, places: Int64s) -> dict[int, RowSet]:
        """Map the file position of each given key to the key's rows.

        Raises:
            CorruptError: A bitmap is corrupt.
        """
        bitmaps = {place: self._find(place) for place in places.tolist()}
        new_places = np.array([place for place, rows in bitmaps.items() if rows is None], np.int64)
        for part in self._read(new_places):
            bitmaps.update(zip(part.places.tolist(), self._each(part), strict=True))
        return {place: rows for place, rows in bitmaps.items() if rows is not None}

    def present(self) -> Present:
        """Return the rows of all keys except null. Computed once.

        Raises:
            CorruptError: A bitmap is corrupt.
        """
        if self._present is None:
            rows, count = RowSet({}), 0
            for part in self._read(np.sort(self.keys.places)):
                sets, number = self._sets(part)
                rows, count = RowSet.union([rows, *sets]), count + number
            self._present = Present(rows.filtered(_compact), len(rows) == count)
        return self._present

    @property
    def is_sound(self) -> bool:
        """False if some rows are known to have several keys, otherwise True."""
        return self._present is None or self._present.is_disjoint

    def known(self, places: Int64s) -> int | None:
        """Return an upper bound of the row count of the given keys, without reading the file, or None if unknown."""
        if len(places) <= COUNTED_BITMAPS:
            cached, new_places = self._look(places)
            if not len(new_places):
                return sum(map(len, cached))
        if self._present is None or np.isin(self.keys.nulls, places).any():
            return None
        return len(self._present.rows)

    def global_buffer(self, index: int) -> bytes:
        """Return a global buffer.

        Raises:
            CorruptError: The buffer does not exist.
        """
        return self._file.global_buffer(index)

    def prewarm(self) -> None:
        """Read all bitmaps, and fill the cache with them."""
        for part in self._read(np.arange(len(self.keys), dtype=np.int64)):
            self._each(part)

    def entries(self) -> Iterator[BitmapEntries]:
        """Yield all entries in file order, batch by batch."""
        keys = self._file.read([KEYS])[0]
        order = written_order(keys)
        in_order = bool((order[1:] > order[:-1]).all())
        for part in self._read(order, sort=not in_order):
            yield BitmapEntries(keys.take(pa.array(part.places)), part.maps)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.keys.nbytes + self._row_sets.nbytes

    def _find(self, place: int) -> RowSet | None:
        entry = self._row_sets.find(place)
        return None if entry is None else entry[0]

    def _look(self, places: Int64s) -> tuple[list[RowSet], Int64s]:
        cached = [self._find(place) for place in places.tolist()] if len(self._row_sets) else []
        if not cached:
            return [], places
        is_new = np.array([rows is None for rows in cached], np.bool_)
        return [rows for rows in cached if rows is not None], places[is_new]

    def _read(self, places: Int64s, *, sort: bool = False) -> Iterator[_BitmapBatch]:
        """Read bitmaps in the order of `places`, block by block."""
        start, step = 0, FIRST_BITMAPS
        while start < len(places):
            block = places[start : start + step]
            if sort:
                ascending = np.argsort(block)
                maps = self._file.read([BITMAPS], block[ascending])[0].take(pa.array(np.argsort(ascending)))
            else:
                maps = self._file.read([BITMAPS], block)[0]
            part = _BitmapBatch(block, maps, self.path)
            yield part
            start += step
            step = max(1, min(INDEX_BLOCK_ROWS, 4 * step, len(block) * INDEX_BLOCK_BYTES // max(part.size, 1)))

    def _each(self, part: _BitmapBatch) -> list[RowSet]:
        bitmaps = []
        for place, data in zip(part.places.tolist(), part.maps, strict=True):
            rows = read_row_address_map(data.as_py(), self.path)
            self._row_sets.put(place, (rows, len(data.as_py()) + ROW_SET_BYTES))
            bitmaps.append(rows)
        return bitmaps

    def _sets(self, part: _BitmapBatch) -> tuple[list[RowSet], int]:
        """Return the rows of bitmaps as sets, and their total row count, including repetitions.

        A set combines the rows of one or more bitmaps.
        """
        if len(part) == 1 or part.size >= SMALL_BITMAP * len(part):
            sets = self._each(part)
            return sets, sum(map(len, sets))
        good, _, rows = read_array_maps(*map_bytes(part.maps))
        row_sets = [read_row_address_map(part.maps[i].as_py(), self.path) for i in np.flatnonzero(~good).tolist()]
        return [RowSet.of(rows), *row_sets], len(rows) + sum(map(len, row_sets))


class _BitmapBatch:
    """Bitmaps that were read together."""

    def __init__(self, places: Int64s, maps: pa.Array, where: str) -> None:
        if maps.null_count:
            raise CorruptError("a key does not have a bitmap", where=where)
        self.places = places
        self.maps = maps
        self.size = _size(maps)

    def __len__(self) -> int:
        return len(self.places)


def _compact(_: int, part: Any) -> Any:
    copied = part.copy()  # the set may be a cached one
    copied.run_optimize()
    return copied


def _size(maps: pa.Array) -> int:
    _, offsets = map_bytes(maps)
    return int(offsets[-1] - offsets[0])


def null_lists(file: BitmapFile) -> RowSet | None:
    """Return the rows whose list is null, or None if the file does not store them."""
    place = file.metadata.get(LIST_NULLS)
    if place is None:
        return None
    if not place.isdecimal() or len(place) > 9:
        raise CorruptError(
            "invalid position of the null lists", where=file.path, expected="a number", found=repr(place)
        )
    return read_row_address_map(file.global_buffer(int(place)), file.path)
