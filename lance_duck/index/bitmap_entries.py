"""Entries of a bitmap index: distinct keys in the order in which they are written, and the rows of each as bytes.

They are made of values and rows, get new names for their rows, and streams of them are merged into one, all of it a
block of many entries at a time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from lance_duck.index.bitmap_keys import is_number, sortable, written_order
from lance_duck.rows.row_maps import LARGEST, array_maps, read_array_maps
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map, row_address_map

Names = NDArray[np.uint64]
Follow = Callable[[Names], tuple[Names, NDArray[np.bool_]]]

_RADIX: Final = 1 << 16
_PIECE: Final = 1 << 22
_AT_ONCE: Final = 1 << 14
_ROWS_AT_ONCE: Final = 1 << 18
_SAMPLE: Final = 1 << 16


@dataclass(frozen=True)
class Entries:
    """Some entries.

    Attributes:
        keys: Distinct, in order; the first may be null.
        maps: binary, a row address map each, without nulls.
    """

    keys: pa.Array
    maps: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes in memory, about."""
        return int(self.keys.nbytes + self.maps.nbytes)


def entries_of(values: pa.ChunkedArray, rows: Names) -> Entries:
    """Make entries of values, and the rows that have them, which may come in any order, also repeatedly."""
    if not len(values):
        return Entries(pa.array([], values.type), pa.array([], pa.binary()))
    keys, ranks = _sorted(values) if _sorts_well(values) else _hashed(values)
    counts, rows = _grouped(ranks, rows, len(keys))
    return Entries(keys, _maps(counts, rows))


def followed(entries: Entries, follow: Follow, where: str) -> Entries:
    """Give rows their new names; entries that lose all of them are left out.

    Raises:
        CorruptError: The rows of an entry are broken.
    """
    good, counts, rows = read_array_maps(*map_bytes(entries.maps))
    names, lives = follow(rows)
    group = np.repeat(np.arange(len(entries)), counts)
    counts, rows = _grouped(group[lives], names[lives], len(entries))
    others = {
        place: moved_rows(read_row_address_map(entries.maps[place].as_py(), where), follow)
        for place in np.flatnonzero(~good).tolist()
    }
    maps = _maps(counts, rows, others)
    left = counts > 0
    left[[place for place, found in others.items() if found]] = True
    chosen = pa.array(np.flatnonzero(left))
    return Entries(entries.keys.take(chosen), maps.take(chosen))


def merged(sources: Sequence[Iterator[Entries]], where: str) -> Iterator[Entries]:
    """Merge streams, each in order and without repeated keys: keys of several get the rows of all.

    Raises:
        CorruptError: The rows of an entry are broken.
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


def moved_rows(rows: RowSet, follow: Follow) -> RowSet:
    """Return the new names of rows that are still entries."""
    found = []
    for fragment_id, offsets in rows.parts.items():
        for start in range(offsets.min(), offsets.max() + 1, _PIECE):
            names = (rows & RowSet.of_ranges([(fragment_id, start, start + _PIECE)])).rows()
            new, lives = follow(names)
            found.append(RowSet.of(new[lives]))
    return RowSet.union(found)


def map_bytes(maps: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of binary values without nulls, and where each begins in them, with their end."""
    if not len(maps):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = maps.buffers()
    begins = np.frombuffer(offsets, np.int32)[maps.offset : maps.offset + len(maps) + 1].astype(np.int64)
    return (np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), begins


class _Head:
    """Entries of a stream that come next."""

    def __init__(self, source: Iterator[Entries]) -> None:
        self._source = source
        self._entries: Entries | None = None
        self._order: pa.Array = pa.array([])

    @property
    def last(self) -> Any:
        """Key of the last of them."""
        return self._order[-1].as_py()

    def fill(self) -> bool:
        """Take more where there are none left; False at the end."""
        while self._entries is None or not len(self._entries):
            self._entries = next(self._source, None)
            if self._entries is None:
                return False
            self._order = sortable(self._entries.keys)
        return True

    def cut(self, last: Any) -> Entries:
        """Remove and return those up to a key."""
        found = self._entries
        if found is None:
            return Entries(self._order[:0], pa.array([], pa.binary()))
        count = bisect_right(range(len(found)), _position(last), key=lambda i: _position(self._order[i].as_py()))
        self._entries = Entries(found.keys[count:], found.maps[count:])
        self._order = self._order[count:]
        return Entries(found.keys[:count], found.maps[:count])


def _position(key: Any) -> tuple[bool, Any]:
    return key is not None, 0 if key is None else key


def _sorts_well(values: pa.ChunkedArray) -> bool:
    """Whether sorting is faster than looking up each value: they are numbers, and most come once."""
    sample = values.slice(0, _SAMPLE)
    return is_number(values.type) and not values.null_count and len(sample.unique()) > len(sample) // 2


def _sorted(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Keys in order, and for each value the place of its key; by sorting them."""
    array = values.combine_chunks()
    found = sortable(array).to_numpy(zero_copy_only=False)
    order = np.argsort(found)
    found = found[order]
    first = np.ones(len(found), np.bool_)
    first[1:] = found[1:] != found[:-1]
    rank = np.empty(len(found), np.uint32)
    rank[order] = np.cumsum(first) - 1
    return array.take(pa.array(order[first])), rank


def _hashed(values: pa.ChunkedArray) -> tuple[pa.Array, NDArray[Any]]:
    """Keys in order, and for each value the place of its key; by looking up each value."""
    bits = _bits(values.type)
    plain = values if bits is None else pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
    encoded = plain.dictionary_encode(null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # what older versions give
        encoded = encoded.unify_dictionaries().chunk(0)
    keys = encoded.dictionary if bits is None else encoded.dictionary.view(values.type)
    order = written_order(keys)
    rank = np.empty(len(keys), np.uint16 if len(keys) <= _RADIX else np.uint32)
    rank[order] = np.arange(len(keys))
    return keys.take(pa.array(order)), rank[encoded.indices.to_numpy(zero_copy_only=False)]


def _bits(type_: pa.DataType) -> pa.DataType | None:
    """Integers in place of floats: every two bit patterns are keys of their own."""
    return {2: pa.int16(), 4: pa.int32(), 8: pa.int64()}[type_.byte_width] if pt.is_floating(type_) else None


def _grouped(group: NDArray[Any], rows: Names, groups: int) -> tuple[NDArray[np.int64], Names]:
    """Rows by group, ascending in each, each once; and how many there are in each."""
    if len(group) and not (group[1:] >= group[:-1]).all():
        if groups <= _RADIX:
            order = np.argsort(group.astype(np.uint16), kind="stable")
        else:  # sorting numbers is much faster than sorting their places
            both = np.sort(group.astype(np.uint64) << np.uint64(32) | np.arange(len(group), dtype=np.uint64))
            order = both.astype(np.uint32)
        group, rows = group[order], rows[order]
    steps = (rows[1:] > rows[:-1]) | (group[1:] != group[:-1])
    if not steps.all():
        order = np.lexsort((rows, group))
        group, rows = group[order], rows[order]
        once = np.ones(len(rows), np.bool_)
        once[1:] = (rows[1:] != rows[:-1]) | (group[1:] != group[:-1])
        group, rows = group[once], rows[once]
    return np.bincount(group, minlength=groups).astype(np.int64), rows


def _maps(counts: NDArray[np.int64], rows: Names, others: dict[int, RowSet] | None = None) -> pa.Array:
    """Serialize the rows of groups; those of `others`, which have none here, are given as sets."""
    end = np.cumsum(counts)
    large = {i: RowSet.of(rows[end[i] - counts[i] : end[i]]) for i in np.flatnonzero(counts > LARGEST).tolist()}
    large |= others or {}
    small = np.ones(len(counts), np.bool_)
    small[list(large)] = False
    if large:
        rows, counts = rows[np.repeat(small, counts)], counts[small]
    maps = pa.concat_arrays([pa.array([], pa.binary()), *_small_maps(counts, rows)])
    if not large:
        return maps
    both = pa.concat_arrays([maps, pa.array([row_address_map(each) for each in large.values()], pa.binary())])
    place = np.empty(len(small), np.int64)
    place[small] = np.arange(len(maps))
    place[list(large)] = np.arange(len(maps), len(both))
    return both.take(pa.array(place))


def _small_maps(counts: NDArray[np.int64], rows: Names) -> Iterator[pa.Array]:
    """Serialize the rows of groups, few at once: the work stays in the caches of the processor."""
    end = np.cumsum(counts)
    start = done = 0
    while start < len(counts):
        few = int(np.searchsorted(end, done + _ROWS_AT_ONCE, "right"))
        stop = max(start + 1, min(start + _AT_ONCE, few))
        yield _binary(*array_maps(counts[start:stop], rows[done : int(end[stop - 1])]))
        start, done = stop, int(end[stop - 1])


def _binary(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _united(pieces: list[Entries], where: str) -> Entries:
    """Entries of several streams as one."""
    if len(pieces) == 1:
        return pieces[0]
    found = pa.concat_arrays([piece.keys for piece in pieces])
    maps = pa.concat_arrays([piece.maps for piece in pieces])
    order = sortable(found).dictionary_encode(null_encoding="encode")
    first = np.full(len(order.dictionary), len(found), np.int64)
    codes = order.indices.to_numpy(zero_copy_only=False)
    np.minimum.at(first, codes, np.arange(len(found)))
    keys = found.take(pa.array(first))
    in_order = written_order(keys)
    rank = np.empty(len(keys), np.int64)
    rank[in_order] = np.arange(len(keys))
    return Entries(keys.take(pa.array(in_order)), _union(maps, rank[codes], len(keys), where))


def _union(maps: pa.Array, group: NDArray[np.int64], groups: int, where: str) -> pa.Array:
    """Unite the maps of each group."""
    good, counts, rows = read_array_maps(*map_bytes(maps))
    whole = np.bincount(group, ~good, groups) == 0
    flat = np.repeat(whole[group], counts)
    by_group, rows = _grouped(np.repeat(group, counts)[flat], rows[flat], groups)
    members: dict[int, list[RowSet]] = {int(i): [] for i in np.flatnonzero(~whole)}
    for place in np.flatnonzero(~whole[group]).tolist():
        members[int(group[place])].append(read_row_address_map(maps[place].as_py(), where))
    return _maps(by_group, rows, {i: RowSet.union(sets) for i, sets in members.items()})
