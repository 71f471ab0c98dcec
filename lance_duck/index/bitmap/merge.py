"""Merges entries: updates the rows of other segments' entries, and joins streams of entries.

Both operations work on blocks of many entries.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.bitmap.entries import BitmapEntries, entry_blocks, grouped, map_bytes, maps_of
from lance_duck.index.bitmap.keys import sortable, written_order
from lance_duck.index.bitmap.layout import FILE
from lance_duck.index.bitmap.open import BitmapFile
from lance_duck.index.kind import Follow, MergeInput
from lance_duck.rows.row_maps import read_array_maps
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map

_PIECE: Final = 1 << 22


def moved_entries(file: BitmapFile, part: MergeInput) -> Iterator[BitmapEntries]:
    """Yield a segment's entries with their current rows, without deleted rows, in blocks."""
    for entries in file.entries():
        for block in entry_blocks(entries):
            yield remapped_entries(block, part.follow, file.path)


def remapped_entries(entries: BitmapEntries, follow: Follow, where: str) -> BitmapEntries:
    """Return entries with their current rows. Entries without remaining rows are dropped.

    Raises:
        CorruptError: The rows of an entry are corrupt.
    """
    good, counts, rows = read_array_maps(*map_bytes(entries.maps))
    names, lives = follow(rows)
    group = np.repeat(np.arange(len(entries)), counts)
    counts, rows = grouped(group[lives], names[lives], len(entries))
    row_sets = {
        place: remapped_rows(read_row_address_map(entries.maps[place].as_py(), where), follow)
        for place in np.flatnonzero(~good).tolist()
    }
    maps = maps_of(counts, rows, row_sets)
    has_rows = counts > 0
    has_rows[[place for place, rows_of_place in row_sets.items() if rows_of_place]] = True
    positions = pa.array(np.flatnonzero(has_rows))
    return BitmapEntries(entries.keys.take(positions), maps.take(positions))


def merged_entries(sources: Sequence[Iterator[BitmapEntries]], where: str = FILE) -> Iterator[BitmapEntries]:
    """Merge sorted streams into one. A key that several streams contain gets the rows of all of them.

    Raises:
        CorruptError: The rows of an entry are corrupt.
    """
    if len(sources) == 1:
        yield from sources[0]
        return
    heads = [_Head(source) for source in sources]
    while True:
        heads = [head for head in heads if head.fill()]
        if not heads:
            return
        last = min((head.last for head in heads), key=_position)
        pieces = [head.cut(last) for head in heads]
        yield _united([piece for piece in pieces if len(piece)], where)


def remapped_rows(rows: RowSet, follow: Follow) -> RowSet:
    """Return the current ids or addresses of rows, without deleted rows."""
    result = []
    for fragment_id, offsets in rows.parts.items():
        for start in range(offsets.min(), offsets.max() + 1, _PIECE):
            names = (rows & RowSet.of_ranges([(fragment_id, start, start + _PIECE)])).rows()
            new, lives = follow(names)
            result.append(RowSet.of(new[lives]))
    return RowSet.union(result)


class _Head:
    """A buffer with the next entries of a stream."""

    def __init__(self, source: Iterator[BitmapEntries]) -> None:
        self._source = source
        self._entries: BitmapEntries | None = None
        self._order: pa.Array = pa.array([])

    @property
    def last(self) -> Any:
        """Key of the last buffered entry."""
        return self._order[-1].as_py()

    def fill(self) -> bool:
        """Read more entries if the buffer is empty. Returns False at the end of the stream."""
        while self._entries is None or not len(self._entries):
            self._entries = next(self._source, None)
            if self._entries is None:
                return False
            self._order = sortable(self._entries.keys)
        return True

    def cut(self, last: Any) -> BitmapEntries:
        """Remove and return the entries up to a key."""
        entries = self._entries
        if entries is None:
            return BitmapEntries(self._order[:0], pa.array([], pa.binary()))
        count = bisect_right(range(len(entries)), _position(last), key=lambda i: _position(self._order[i].as_py()))
        self._entries = BitmapEntries(entries.keys[count:], entries.maps[count:])
        self._order = self._order[count:]
        return BitmapEntries(entries.keys[:count], entries.maps[:count])


def _position(key: Any) -> tuple[bool, Any]:
    return key is not None, 0 if key is None else key


def _united(pieces: list[BitmapEntries], where: str) -> BitmapEntries:
    """Unite entries of several streams."""
    if len(pieces) == 1:
        return pieces[0]
    all_keys = pa.concat_arrays([piece.keys for piece in pieces])
    maps = pa.concat_arrays([piece.maps for piece in pieces])
    order = sortable(all_keys).dictionary_encode(null_encoding="encode")
    first = np.full(len(order.dictionary), len(all_keys), np.int64)
    codes = order.indices.to_numpy(zero_copy_only=False)
    np.minimum.at(first, codes, np.arange(len(all_keys)))
    keys = all_keys.take(pa.array(first))
    in_order = written_order(keys)
    rank = np.empty(len(keys), np.int64)
    rank[in_order] = np.arange(len(keys))
    return BitmapEntries(keys.take(pa.array(in_order)), _union(maps, rank[codes], len(keys), where))


def _union(maps: pa.Array, group: NDArray[np.int64], groups: int, where: str) -> pa.Array:
    """Unite the maps of each group."""
    good, counts, rows = read_array_maps(*map_bytes(maps))
    whole = np.bincount(group, ~good, groups) == 0
    flat = np.repeat(whole[group], counts)
    by_group, rows = grouped(np.repeat(group, counts)[flat], rows[flat], groups)
    members: dict[int, list[RowSet]] = {int(i): [] for i in np.flatnonzero(~whole)}
    for place in np.flatnonzero(~whole[group]).tolist():
        members[int(group[place])].append(read_row_address_map(maps[place].as_py(), where))
    return maps_of(by_group, rows, {i: RowSet.union(sets) for i, sets in members.items()})
