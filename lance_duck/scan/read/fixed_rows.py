"""Zero-copy access by offset to fixed-size list rows in memory-mapped files, without an Arrow array for each page.

A page is plain if its rows are stored consecutively in the file, as in Arrow. A column is plain if all its pages are
plain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import FragmentReader
from lance_duck.store.checked import look, mapped_file
from lance_duck.store.mapped import MappedFile
from lance_duck.store.request import ByteSource, run

Int64s = NDArray[np.int64]

_MEMORY_PAGE: Final = 4096


@dataclass(frozen=True, eq=False)
class FixedRows:
    """A plain column of fixed-size lists in one fragment.

    Attributes:
        source: The file of the column, whose bytes are verified.
        file: The same file, mapped, whose bytes are not verified.
        first_rows: int64 (pages,), the first row of each page.
        positions: int64 (pages,), the ascending byte offsets in the file of these rows.
        num_rows: Row count of the fragment.
        width: Row width, in bytes.
    """

    source: ByteSource
    file: MappedFile
    first_rows: Int64s
    positions: Int64s
    num_rows: int
    width: int

    def holds(self, dtype: np.dtype[Any]) -> bool:
        """Return whether the rows are aligned for numbers of this dtype."""
        return not (self.positions % dtype.itemsize).any()

    def look(self, offsets: Int64s, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Int64s]:
        """Return the whole file as an array, and the start index of each row in it.

        Args:
            offsets: int64 (n,), ascending offsets in the fragment, at least one.
            dtype: Dtype of the numbers. `holds` must be true for this dtype.
        """
        size = self.source.size - self.source.size % dtype.itemsize
        touched = len(offsets) * max(self.width, _MEMORY_PAGE)
        source = self.file if self._verified[offsets].all() else self.source
        data = look(source, 0, size, touched, offsets, self._spans, repeats=True)
        self._verified[offsets] = True
        return data.view(dtype), self._spans(offsets)[0] // dtype.itemsize

    @cached_property
    def _verified(self) -> NDArray[np.bool_]:
        """Whether the checksums of each row's bytes have been verified: bool (num_rows,)."""
        return np.zeros(self.num_rows, np.bool_)

    def _spans(self, offsets: Int64s) -> tuple[Int64s, Int64s]:
        """Return the start and end offsets of rows in the file, in bytes."""
        pages = np.searchsorted(self.first_rows, offsets, "right") - 1
        starts = self.positions[pages] + (offsets - self.first_rows[pages]) * self.width
        return starts, starts + self.width


def fixed_rows(reader: FragmentReader, read: Read, ends: Sequence[int], width: int) -> FixedRows | None:
    """Return a column of a fragment, or None if it is not plain or its file is not memory-mapped.

    The function reads two rows of each page.

    Args:
        reader: The fragment.
        read: The column: a fixed-size list of numbers, read in the stored type.
        ends: End of each of the column's pages, as a row number in the fragment.
        width: Row width, in bytes.
    """
    source = reader.source_of(read)
    file = None if source is None else mapped_file(source)
    if source is None or file is None or not reader.num_rows or not ends or ends[-1] != reader.num_rows:
        return None
    whole = file.look(0, file.size, 0)  # keeps the mapping, so that its addresses are not used again
    base: int = whole.ctypes.data
    firsts = [0, *ends[:-1]]
    positions: list[int] = []
    for first, end in zip(firsts, ends, strict=True):
        if first == end:
            return None
        position = _address(run(reader.view(read, slice(first, first + 1))), width) - base
        last = _address(run(reader.view(read, slice(end - 1, end))), width) - base
        is_later = not positions or position > positions[-1]
        if position < 0 or not is_later or last + width > source.size or last - position != (end - first - 1) * width:
            return None
        positions.append(position)
    return FixedRows(source, file, np.array(firsts, np.int64), np.array(positions, np.int64), reader.num_rows, width)


def _address(array: pa.Array, width: int) -> int:
    """Return the memory address of the only row of an array. It is negative if unknown."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    values: Any = array.values.slice(array.offset * array.type.list_size, array.type.list_size)
    data = None if array.null_count or values.null_count else values.buffers()[1]
    return -1 if data is None else int(data.address) + values.offset * (width // array.type.list_size)
