"""Validates vector segments: each covered row must occur once for each of its vectors, with that vector."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of
from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.names import Follower
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.multivectors import is_multivector, vectors_in
from lance_duck.index.vector.search.contract import Probe, VectorIndex
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.snapshot import Snapshot

_SAMPLES: Final = 8
_ROUNDING: Final = 1e-3


class VectorRows:
    """The rows of an open vector segment.

    Args:
        snapshot: Version of the table.
        segment: A segment of its catalog.
        index: The segment, open.

    Raises:
        CorruptError: A row lies past the end of its fragment, or a live row occurs twice.
    """

    def __init__(self, snapshot: Snapshot, segment: Segment, index: VectorIndex) -> None:
        addresses, lives = Follower(snapshot, segment).follow(index.rows())
        self._index = index
        self._positions = np.flatnonzero(lives)
        self._positions = self._positions[np.argsort(addresses[self._positions], kind="stable")]
        self._addresses = addresses[self._positions]
        twice = np.flatnonzero(self._addresses[1:] == self._addresses[:-1])
        self._is_many = is_multivector(segment.type)
        if len(twice) and not self._is_many:
            raise CorruptError("the index contains rows twice", where=segment, found=self._addresses[twice[0]])

    def check(self, fragment_id: int, column: pa.Array, offsets: NDArray[np.int64]) -> None:
        """Compare the segment with the vectors and offsets of a fragment's live rows.

        Raises:
            CorruptError: The index lacks a searchable row, contains a row that is not searchable, or stores a different
                vector.
        """
        if self._is_many:
            column, counts = vectors_in(column)
            offsets = np.repeat(offsets, counts)
        vectors = vectors_of(column, metric=self._index.metric)
        addresses = np.uint64(fragment_id << 32) + offsets.astype(np.uint64)
        mine = self._addresses >> np.uint64(32) == fragment_id
        missing = difference_of(addresses[vectors.usable], self._addresses[mine])
        if len(missing):
            raise CorruptError(
                f"row {int(missing[0]) & 0xFFFFFFFF} of fragment {fragment_id} is not in the index",
                found=f"{len(missing)} such rows",
            )
        usable = np.flatnonzero(vectors.usable)
        if self._is_many and not np.array_equal(addresses[usable], self._addresses[mine]):
            raise CorruptError(
                f"the index has the wrong number of vectors for fragment {fragment_id}",
                expected=len(usable),
                found=int(np.count_nonzero(mine)),
            )
        if not self._index.is_exact or not len(usable):
            return
        for place in np.unique(np.linspace(0, len(usable) - 1, _SAMPLES).astype(np.int64)).tolist():
            row = usable[place]
            self._check_vector(int(addresses[row]), vectors.values[row : row + 1])

    def _check_vector(self, address: int, vector: NDArray[np.float32]) -> None:
        mask = np.zeros(self._index.num_rows, np.bool_)
        first, last = np.searchsorted(self._addresses, np.array([address, address + 1], np.uint64)).tolist()
        mask[self._positions[first:last]] = True
        nearest = float(self._index.search(np.ascontiguousarray(vector), 1, mask, Probe(1)).distances[0, 0])
        expected = float(distances(self._index.metric, vector, vector)[0, 0])
        size = float((vector.astype(np.float64) ** 2).sum()) if self._index.metric in ("l2", "dot") else 1.0
        if not abs(nearest - expected) <= _ROUNDING * (1 + size):
            raise CorruptError(
                f"the index has a different vector for row {address & 0xFFFFFFFF} of fragment {address >> 32}",
                expected=f"distance {expected}",
                found=nearest,
            )
