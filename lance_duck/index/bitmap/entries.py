"""Bitmap entries: distinct keys in file order, and the serialized rows of each key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.bitmap.costs import ENTRIES_AT_ONCE, ENTRIES_BLOCK_BYTES
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.kind import Rows
from lance_duck.rows.row_maps import LARGEST, array_maps
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map


@dataclass(frozen=True)
class BitmapEntries:
    """A batch of entries.

    Attributes:
        keys: Distinct keys in file order. The first one may be null.
        maps: binary, the row address map of each key, without nulls.
    """

    keys: pa.Array
    maps: pa.Array

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Approximate number of bytes in memory."""
        return int(self.keys.nbytes + self.maps.nbytes)


def entry_blocks(entries: BitmapEntries) -> Iterator[BitmapEntries]:
    """Split entries into blocks that are processed separately."""
    _, begins = map_bytes(entries.maps)
    start = 0
    while start < len(entries):
        full = int(np.searchsorted(begins, begins[start] + ENTRIES_BLOCK_BYTES, "right")) - 1
        stop = max(start + 1, min(full, start + ENTRIES_AT_ONCE, len(entries)))
        yield BitmapEntries(entries.keys[start:stop], entries.maps[start:stop])
        start = stop


RADIX: Final = 1 << 16


def grouped(group: NDArray[Any], rows: Rows, groups: int) -> tuple[NDArray[np.int64], Rows]:
    """Return the row count of each group, and the distinct rows, group by group. The rows of a group ascend."""
    if len(group) and not (group[1:] >= group[:-1]).all():
        if groups <= RADIX:
            order = np.argsort(group.astype(np.uint16), kind="stable")
        else:  # sorting packed numbers is much faster than argsort
            keys = np.sort(group.astype(np.uint64) << np.uint64(32) | np.arange(len(group), dtype=np.uint64))
            order = keys.astype(np.uint32)
        group, rows = group[order], rows[order]
    steps = (rows[1:] > rows[:-1]) | (group[1:] != group[:-1])
    if not steps.all():
        order = np.lexsort((rows, group))
        group, rows = group[order], rows[order]
        once = np.ones(len(rows), np.bool_)
        once[1:] = (rows[1:] != rows[:-1]) | (group[1:] != group[:-1])
        group, rows = group[once], rows[once]
    return np.bincount(group, minlength=groups).astype(np.int64), rows


def maps_of(counts: NDArray[np.int64], rows: Rows, row_sets: dict[int, RowSet] | None = None) -> pa.Array:
    """Return the row address map of each group. `row_sets` has the rows of the groups that are not in `rows`."""
    end = np.cumsum(counts)
    large = {i: RowSet.of(rows[end[i] - counts[i] : end[i]]) for i in np.flatnonzero(counts > LARGEST).tolist()}
    large |= row_sets or {}
    small = np.ones(len(counts), np.bool_)
    small[list(large)] = False
    if large:
        rows, counts = rows[np.repeat(small, counts)], counts[small]
    maps = pa.concat_arrays([pa.array([], pa.binary()), *_small_maps(counts, rows)])
    if not large:
        return maps
    all_maps = pa.concat_arrays([maps, pa.array([row_address_map(each) for each in large.values()], pa.binary())])
    place = np.empty(len(small), np.int64)
    place[small] = np.arange(len(maps))
    place[list(large)] = np.arange(len(maps), len(all_maps))
    return all_maps.take(pa.array(place))


def map_bytes(maps: pa.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of binary values without nulls, and the offsets of the values, followed by the total size."""
    if not len(maps):
        return np.empty(0, np.uint8), np.zeros(1, np.int64)
    _, offsets, data = maps.buffers()
    begins = np.frombuffer(offsets, np.int32)[maps.offset : maps.offset + len(maps) + 1].astype(np.int64)
    return (np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)), begins


def _small_maps(counts: NDArray[np.int64], rows: Rows) -> Iterator[pa.Array]:
    """Serialize the rows of groups, a few groups at a time, to stay within the processor's caches."""
    end = np.cumsum(counts)
    start = row = 0
    while start < len(counts):
        last = int(np.searchsorted(end, row + INDEX_BLOCK_ROWS, "right"))
        stop = max(start + 1, min(start + ENTRIES_AT_ONCE, last))
        yield _binary(*array_maps(counts[start:stop], rows[row : int(end[stop - 1])]))
        start, row = stop, int(end[stop - 1])


def _binary(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)
