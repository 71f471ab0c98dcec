"""Writes the files of a B-tree from sorted entries. `layout` describes the files."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined_arrays
from lance_duck.errors import CorruptError
from lance_duck.index.btree.costs import SORT_COPIES, SORT_WORD_BYTES, TREE_PAGE_BYTES, TREE_SLICE_PAGES
from lance_duck.index.btree.keys import BTreeKeys, FixedKeys
from lance_duck.index.btree.layout import DATA, LOOKUP, PAGE_ROWS, data_schema, lookup_metadata, lookup_schema
from lance_duck.index.btree.order import order_of
from lance_duck.index.files import SegmentWriter
from lance_duck.index.kind import Rows

_SLICE_ROWS: Final = TREE_SLICE_PAGES * PAGE_ROWS


class TreeWriter:
    """Writes the files of a B-tree. As a context manager, it removes them if the block fails.

    Args:
        writer: Writer of the segment.
        type_: Type of the values.
        make: Converts an array of values to B-tree keys.
        page_rows: Number of entries per page.
    """

    def __init__(
        self,
        writer: SegmentWriter,
        type_: pa.DataType,
        make: Callable[[pa.Array], BTreeKeys],
        page_rows: int = PAGE_ROWS,
    ) -> None:
        self._segment = writer
        self._type = type_
        self._make = make
        self._page_rows = page_rows
        self._schema = data_schema(type_)
        self._file = writer.create(DATA, self._schema, page_bytes=TREE_PAGE_BYTES)
        self._rows = self._nulls = 0
        self._mins: list[pa.Array] = []
        self._maxs: list[pa.Array] = []
        self._last: pa.Array | None = None

    def write(self, values: pa.Array, rows: Rows) -> None:
        """Append sorted entries. None of them may be below an entry that was already written.

        Raises:
            CorruptError: The entries are not in order.
        """
        count = len(values)
        if not count:
            return
        page = self._page_rows
        self._check_order(values)
        self._file.write(pa.record_batch([values, pa.array(rows)], schema=self._schema))
        self._mins.append(values.take(np.arange(-self._rows % page, count, page)))
        self._maxs.append(values.take(np.arange((-self._rows - 1) % page, count, page)))
        self._last = values.slice(count - 1)
        self._nulls += values.null_count
        self._rows += count

    def write_sorted(self, values: pa.Array, rows: Rows, order: NDArray[np.int64]) -> None:
        """Append entries in the order of the positions in `order`, slice by slice."""
        for at in range(0, len(order), _SLICE_ROWS):
            slice_ = order[at : at + _SLICE_ROWS]
            self.write(values.take(slice_), rows[slice_])

    def write_nulls(self, rows: Rows) -> None:
        """Append entries without a value."""
        for at in range(0, len(rows), _SLICE_ROWS):
            slice_ = rows[at : at + _SLICE_ROWS]
            self.write(pa.nulls(len(slice_), self._type), slice_)

    def finish(self) -> None:
        """Write the remaining entries, and publish both files."""
        page = self._page_rows
        if self._last is not None and self._rows % page:
            self._maxs.append(self._last)
        self._segment.add(DATA, self._file)
        schema = lookup_schema(self._type).with_metadata(lookup_metadata(page))
        starts = np.arange(0, self._rows, page)
        counts = np.clip(self._nulls - starts, 0, np.minimum(page, self._rows - starts)).astype(np.uint32)
        numbers = np.arange(len(starts), dtype=np.uint32)
        ends = [joined_arrays(each, self._type) for each in (self._mins, self._maxs)]
        with self._segment.create(LOOKUP, schema) as file:
            file.write(pa.record_batch([*ends, pa.array(counts), pa.array(numbers)], schema=schema))
            self._segment.add(LOOKUP, file)

    def __enter__(self) -> TreeWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._file.abort()

    def _check_order(self, values: pa.Array) -> None:
        """Check that the values are not below the last written value. Raises CorruptError."""
        if self._last is None or self._last.null_count:
            return
        first = values.slice(0, 1)
        if first.null_count or not self._make(pa.concat_arrays([self._last, first])).is_ascending():
            raise CorruptError("the entries of the B-tree are not in order", where=self._segment.directory)


def row_bytes(size: int, count: int) -> int:
    """Return the memory for sorting an entry, in bytes, if `count` values have `size` bytes in total."""
    return SORT_WORD_BYTES + SORT_COPIES * -(-size // max(1, count))


def write_sorted(tree: TreeWriter, values: pa.Array, rows: Rows, make: Callable[[pa.Array], BTreeKeys]) -> None:
    """Sort and write entries: nulls come first, and equal values are sorted by their rows.

    Args:
        tree: Writer of the B-tree.
        values: (n,), including nulls.
        rows: (n,), rows of the values.
        make: Converts an array of values to B-tree keys.
    """
    if not (rows[1:] >= rows[:-1]).all():
        order = order_of(FixedKeys(rows))
        values, rows = values.take(order), rows[order]
    if values.null_count:
        null = values.is_null().to_numpy(zero_copy_only=False)
        tree.write_nulls(rows[null])
        values, rows = values.drop_null(), rows[~null]
    tree.write_sorted(values, rows, order_of(make(values)))
