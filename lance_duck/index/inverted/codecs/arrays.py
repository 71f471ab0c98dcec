"""Converts Arrow arrays of binary values and of lists to buffers, and back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs.problems import check_code
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.lists import gather_lists, size_lists

Bytes = NDArray[np.uint8]
Int64s = NDArray[np.int64]

_NO_BYTES: Final = readonly(np.empty(0, np.uint8))


@dataclass(frozen=True, eq=False, slots=True)
class BinaryLists:
    """Lists of binary values, in read-only arrays.

    Attributes:
        data: uint8, bytes of all values.
        offsets: int64 (values + 1,), offset of each value in `data`, followed by the end of the last value.
        lists: int64 (lists + 1,), index of each list's first value, followed by the number of values.
    """

    data: Bytes
    offsets: Int64s
    lists: Int64s

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.data.nbytes + self.offsets.nbytes + self.lists.nbytes

    def take(self, rows: Int64s, where: str) -> BinaryLists:
        """Return a copy of the lists at the given positions.

        Args:
            rows: Positions of the lists, in any order.
            where: Name of the file, for messages.

        Raises:
            CorruptError: A list is corrupt.
        """
        places, sizes = readonly(rows), np.empty(2, np.int64)
        code = size_lists(len(self.data), self.offsets, self.lists, places, sizes)
        check_code(code, "lists of blocks", where, "list")
        values, size = sizes.tolist()
        data, offsets, lists = (
            np.empty(size, np.uint8),
            np.empty(values + 1, np.int64),
            np.empty(len(rows) + 1, np.int64),
        )
        gather_lists(self.data, self.offsets, self.lists, places, data, offsets, lists)
        return BinaryLists(readonly(data), readonly(offsets), readonly(lists))

    def size_of(self, rows: Int64s, where: str) -> tuple[int, int]:
        """Return the number of values of some lists, and their size in bytes.

        Raises:
            CorruptError: The offsets of a list are outside the data.
        """
        lists, offsets, size = self.lists, self.offsets, len(self.data)
        values = total = 0
        for place, row in enumerate(rows.tolist()):
            first, last = (lists.item(row), lists.item(row + 1)) if 0 <= row < len(lists) - 1 else (0, -1)
            begin, end = (offsets.item(first), offsets.item(last)) if 0 <= first <= last < len(offsets) else (0, -1)
            if not 0 <= begin <= end <= size:
                check_code(status.BAD_OFFSETS | (place << 8), "lists of blocks", where, "list")
            values += last - first
            total += end - begin
        return values, total


def joined_values(values: Sequence[bytes]) -> tuple[Bytes, Int64s]:
    """Return the bytes of values, and the offsets of the values, followed by the total size. Both are read-only."""
    offsets = np.array((0, len(values[0])) if len(values) == 1 else [0, *accumulate(map(len, values))], np.int64)
    offsets.setflags(write=False)
    return np.frombuffer(b"".join(values), np.uint8), offsets


def bytes_and_offsets(values: pa.LargeBinaryArray) -> tuple[Bytes, Int64s]:
    """Return the bytes of values, and the offsets of the values, followed by the total size. Both are read-only."""
    offsets = values.buffers()[1]
    if offsets is None or not len(values):
        return _NO_BYTES, readonly(np.zeros(1, np.int64))
    data = values.buffers()[2]
    bounds = np.frombuffer(offsets, np.int64)[values.offset : values.offset + len(values) + 1]
    return _NO_BYTES if data is None else readonly(np.frombuffer(data, np.uint8)), readonly(bounds)


def binary_lists_of(lists: pa.ListArray, where: str) -> BinaryLists:
    """Return the values of lists of binary. Raises CorruptError if a list or a value is null."""
    if lists.null_count or lists.values.null_count:
        raise CorruptError("the posting blocks contain a null", where=where)
    data, offsets = bytes_and_offsets(lists.values)
    return BinaryLists(data, offsets, readonly(np.asarray(lists.offsets).astype(np.int64)))


def large_binary(data: Bytes, offsets: Int64s) -> pa.LargeBinaryArray:
    """Return binary values as an Arrow array."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def list_array(values: pa.Array, bounds: Int64s) -> pa.ListArray:
    """Return lists of values, split at `bounds`."""
    return pa.ListArray.from_arrays(pa.array(bounds.astype(np.int32)), values)
