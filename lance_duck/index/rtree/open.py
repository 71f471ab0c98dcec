"""The open files of an R-tree: the boxes of pages in memory, and items that are read on demand and cached."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.arrow.join import joined
from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError
from lance_duck.index.files import SegmentFile, SegmentReader
from lance_duck.index.kind import Rows
from lance_duck.index.rtree.costs import BLOCK_ITEMS, PAGE_BYTES
from lance_duck.index.rtree.layout import (
    BOX,
    BOX_TYPE,
    DATA,
    ID,
    NULLS,
    NULLS_FILE,
    NUM_ITEMS,
    PAGE_SIZE,
    SIDES,
    TOTAL,
    Boxes,
    level_sizes,
)
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map

Page = tuple[Boxes, Rows]
_LARGEST = 1 << 31


class RTreeFile:
    """The files of a segment. Safe to use from several threads.

    Attributes:
        path: Path of the file with the boxes, for messages.
        num_items: Number of items.
        page_size: Number of items per page.
        total: Box around all items, in JSON.
        page_boxes: Box around each page of items (pages, 4).

    Args:
        files: Files of the segment.

    Raises:
        CorruptError, NotFoundError: The files are corrupt or missing.
    """

    def __init__(self, files: SegmentReader) -> None:
        self._file: SegmentFile = files.open(DATA)
        self._nulls_file: SegmentFile = files.open(NULLS_FILE)
        self.path = self._file.path
        place = self._file.schema.get_field_index(BOX)
        type_ = self._file.schema.field(place).type if place >= 0 else None
        if type_ is None or [(f.name, f.type) for f in type_] != [(f.name, f.type) for f in BOX_TYPE]:
            raise CorruptError("the boxes of the R-tree have the wrong type", where=self.path, found=str(type_))
        self._file.column(ID, pa.uint64())
        self.page_size = self._number(PAGE_SIZE, 2, _LARGEST)
        self.num_items = self._number(NUM_ITEMS, 0, self._file.num_rows)
        sizes = level_sizes(self.num_items, self.page_size)
        if sum(sizes) != self._file.num_rows:
            raise CorruptError(
                "the levels of the R-tree do not add up",
                where=self.path,
                expected=sum(sizes),
                found=self._file.num_rows,
            )
        self.total = self._file.metadata.get(TOTAL, "")
        self.page_boxes = self._upper(sizes)
        self._pages: SizedCache[Page] = SizedCache(PAGE_BYTES, lambda page: page[0].nbytes + page[1].nbytes)

    @cached_property
    def nulls(self) -> RowSet:
        """Rows of null geometries. Raises CorruptError."""
        (column,) = self._nulls_file.read([NULLS])
        content = column[0].as_py() if len(column) == 1 and pa.types.is_binary(column.type) else None
        if content is None:
            raise CorruptError("invalid null rows of the R-tree", where=self._nulls_file.path, expected="one binary")
        return read_row_address_map(content, self._nulls_file.path)

    def page(self, number: int) -> Page:
        """Return the boxes and rows of a page of items. Raises CorruptError."""
        return self._pages.get(number, lambda: self._checked(number))

    def blocks(self) -> Iterator[Page]:
        """Yield the boxes and rows of all items, in blocks that are not cached. Raises CorruptError."""
        for start in range(0, self.num_items, BLOCK_ITEMS):
            yield self._read(slice(start, min(start + BLOCK_ITEMS, self.num_items)))

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.page_boxes.nbytes + self._pages.nbytes

    def _upper(self, sizes: list[int]) -> Boxes:
        if len(sizes) == 1:
            return np.array([[-np.inf, -np.inf, np.inf, np.inf]]) if self.num_items else np.empty((0, 4))
        parts = []
        for start in range(0, sizes[1], BLOCK_ITEMS):
            stop = min(start + BLOCK_ITEMS, sizes[1])
            boxes, numbers = self._read(slice(sizes[0] + start, sizes[0] + stop))
            if not np.array_equal(numbers, np.arange(start, stop, dtype=np.uint64)):
                raise CorruptError("the pages of the R-tree are not in order", where=self.path)
            parts.append(boxes)
        return np.concatenate(parts)

    def _checked(self, number: int) -> Page:
        start = number * self.page_size
        boxes, rows = self._read(slice(start, min(start + self.page_size, self.num_items)))
        around = self.page_boxes[number]
        if (boxes[:, :2] < around[:2]).any() or (boxes[:, 2:] > around[2:]).any():
            raise CorruptError("an item of the R-tree lies outside its page", where=self.path, found=f"page {number}")
        return boxes, rows

    def _read(self, rows: slice) -> Page:
        box, ids = self._file.read([BOX, ID], rows)
        boxes = np.stack([box.field(side).to_numpy(zero_copy_only=False) for side in SIDES], axis=1)
        if box.null_count or ids.null_count or np.isnan(boxes).any():
            raise CorruptError("a box of the R-tree is null or NaN", where=self.path)
        return boxes, ids.to_numpy()

    def _number(self, name: str, low: int, high: int) -> int:
        text = self._file.metadata.get(name, "")
        number = int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else -1
        if not low <= number <= high:
            raise CorruptError(f"invalid {name} of the R-tree", where=self.path, expected=f"{low} … {high}", found=text)
        return number


def rows_in(pages: list[Any]) -> Rows:
    """Join rows of several pages."""
    return joined(pages, np.uint64)
