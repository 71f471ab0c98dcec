"""Deletion vectors: the deleted rows of a fragment.

_deletions/*.arrow    Arrow IPC file, one column of 32-bit offsets in any order, perhaps compressed
_deletions/*.bin      portable 32-bit roaring bitmap of offsets

Both may have a seal: see `checksums.sealed`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct, union_of
from lance_duck.checksums.sealed import unsealed_deletions
from lance_duck.errors import CorruptError
from lance_duck.rows.costs import BITMAP_FILE_ROWS, COMPRESSED_ROWS
from lance_duck.rows.roaring import roaring_bytes, roaring_values
from lance_duck.wire.limits import ROW_OFFSETS

MAX_ROWS = ROW_OFFSETS - 1

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])


class DeletionVector:
    """The deleted rows of one fragment. All offsets are below 2^32.

    Args:
        deleted: uint32, strictly ascending offsets of the deleted rows.
    """

    def __init__(self, deleted: NDArray[np.uint32]) -> None:
        self.deleted = deleted
        deleted.setflags(write=False)

    @classmethod
    def of(cls, offsets: NDArray[np.integer]) -> DeletionVector:
        """Build a vector from offsets, in any order and possibly repeated."""
        return cls(distinct(offsets.astype(np.uint32, copy=False)))

    @property
    def count(self) -> int:
        """Number of deleted rows."""
        return len(self.deleted)

    def count_in(self, start: int, stop: int) -> int:
        """Return the number of deleted rows among the offsets start … stop - 1."""
        low, high = self._places(start, stop)
        return high - low

    def mask(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return a mask of the live rows among the offsets start … stop - 1."""
        live = np.ones(stop - start, np.bool_)
        low, high = self._places(start, stop)
        live[self.deleted[low:high] - np.uint32(start)] = False
        return live

    def live_offsets(self, start: int, stop: int) -> NDArray[np.int64]:
        """Return the offsets of the live rows among start … stop - 1, ascending."""
        if self.count_in(start, stop) == 0:
            return np.arange(start, stop, dtype=np.int64)
        return np.flatnonzero(self.mask(start, stop)).astype(np.int64, copy=False) + start

    def contains(self, offsets: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return, for each offset in any order, whether the row is deleted."""
        if not self.count:
            return np.zeros(len(offsets), np.bool_)
        # Targets get the vector's dtype, because a wider one would make each search copy the whole vector.
        targets = offsets.astype(np.uint32, copy=False)
        places = np.searchsorted(self.deleted, targets)
        return np.asarray(self.deleted[np.minimum(places, self.count - 1)] == targets)

    def nth_live(self, places: NDArray[np.integer]) -> NDArray[np.int64]:
        """Return the offsets of live rows, given their positions among the live rows, counted from 0.

        Each position must be less than the fragment's live row count.
        """
        before = np.searchsorted(self._live_before, places.astype(np.uint32, copy=False), side="right")
        return places.astype(np.int64) + before

    def union(self, other: DeletionVector) -> DeletionVector:
        """Return a vector of the rows that are deleted in at least one of the two vectors."""
        if not other.count:
            return self
        return DeletionVector(union_of(self.deleted, other.deleted)) if self.count else other

    def difference(self, other: DeletionVector) -> DeletionVector:
        """Return a vector of the rows that are deleted in this vector but not in `other`."""
        return DeletionVector(self.deleted[~other.contains(self.deleted)])

    def intersects(self, other: DeletionVector) -> bool:
        """Return whether any row is deleted in both vectors."""
        small, large = sorted((self, other), key=lambda vector: vector.count)
        return bool(large.contains(small.deleted).any())

    @property
    def suffix(self) -> str:
        """File suffix: "bin" for at least `BITMAP_FILE_ROWS` deleted rows, otherwise "arrow"."""
        return "arrow" if self.count < BITMAP_FILE_ROWS else "bin"

    def to_bytes(self) -> bytes:
        """Return the contents of a deletion file with the suffix `suffix`."""
        return _arrow_bytes(self.deleted) if self.suffix == "arrow" else roaring_bytes(self.deleted)

    @cached_property
    def _live_before(self) -> NDArray[np.uint32]:
        places: NDArray[np.uint32] = np.arange(self.count, dtype=np.uint32)
        return self.deleted - places

    def _places(self, start: int, stop: int) -> tuple[int, int]:
        low, high = np.searchsorted(self.deleted, np.array([start, stop], np.uint32))
        return int(low), int(high)


def read_deletion_vector(
    data: bytes, suffix: str, where: str, physical_rows: int | None = None, expected: int | None = None
) -> DeletionVector:
    """Parse a deletion file.

    Args:
        data: The whole file.
        suffix: "arrow" or "bin".
        where: Name of the file, for messages.
        physical_rows: Row count of the fragment, if known: all offsets must be below it.
        expected: Number of deleted rows according to the manifest. None if the manifest does not store it.

    Raises:
        CorruptError: The file is not a deletion file, does not match its seal, or contradicts the manifest.
    """
    data, _ = unsealed_deletions(data, suffix, where)
    limit = MAX_ROWS if physical_rows is None else physical_rows
    offsets = roaring_values(data, where, limit) if suffix == "bin" else _arrow_offsets(data, where)
    if len(offsets) and int(offsets[-1]) >= limit:
        raise CorruptError("a deleted row is out of range", where=where, expected=f"< {limit}", found=int(offsets[-1]))
    if expected is not None and len(offsets) != expected:
        raise CorruptError("wrong number of deleted rows", where=where, expected=expected, found=len(offsets))
    return DeletionVector(offsets)


def _arrow_bytes(offsets: NDArray[np.uint32]) -> bytes:
    sink = pa.BufferOutputStream()
    compression = None if len(offsets) < COMPRESSED_ROWS else "zstd"
    with pa.ipc.new_file(sink, _SCHEMA, options=pa.ipc.IpcWriteOptions(compression=compression)) as file:
        file.write(pa.record_batch([pa.array(offsets)], schema=_SCHEMA))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _arrow_offsets(data: bytes, where: str) -> NDArray[np.uint32]:
    try:
        with pa.ipc.open_file(pa.py_buffer(data)) as file:
            table = file.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise CorruptError("the Arrow file of deleted rows is corrupt", where=where, found=str(error)) from error
    types = (pa.uint32(), pa.int32())
    if table.num_columns != 1 or table.schema.types[0] not in types or table.column(0).null_count:
        raise CorruptError(
            "unexpected columns in a deletion file", where=where, expected="one of uint32", found=table.schema.types
        )
    offsets: NDArray[np.uint32] = table.column(0).to_numpy().view(np.uint32)
    return offsets.copy() if bool(np.all(offsets[1:] > offsets[:-1])) else distinct(offsets)
