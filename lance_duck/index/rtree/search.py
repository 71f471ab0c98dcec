"""Searches of an open segment, which find the rows whose boxes overlap a box."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.kind import Answer, Rows
from lance_duck.index.query import Overlaps, Query
from lance_duck.index.rtree.layout import Boxes, level_sizes
from lance_duck.index.rtree.open import RTreeFile, rows_in
from lance_duck.rows.row_set import RowSet


class RTreeIndex:
    """An open segment.

    Attributes:
        file: Files of the segment.
        type: Storage type of the column.
    """

    def __init__(self, file: RTreeFile, type_: pa.DataType) -> None:
        self.file = file
        self.type = type_

    def estimate(self, query: Query) -> int | None:
        """Return the row count of the pages that a box overlaps, or the number of nulls."""
        if isinstance(query, Overlaps):
            return min(len(self._pages(query)) * self.file.page_size, self.file.num_items)
        return len(self.file.nulls)

    def search(self, query: Query) -> Answer:
        """Return the rows whose boxes overlap a box, as rows that may match, or the null rows."""
        if not isinstance(query, Overlaps):
            return Answer.exactly(self.file.nulls)
        found = []
        for number in self._pages(query).tolist():
            boxes, rows = self.file.page(number)
            found.append(rows[_overlap(boxes, query)])
        return Answer.at_most(RowSet.of(rows_in(found)))

    @property
    def num_entries(self) -> int:
        """Number of items and null rows."""
        return self.file.num_items + len(self.file.nulls)

    def row_names(self) -> RowSet:
        """Return the ids or addresses of all items and nulls. Reads all items."""
        return RowSet.union([self.file.nulls, *(RowSet.of(rows) for rows in self.names())])

    def names(self) -> Iterator[Rows]:
        """See `Naming`. Null geometries count as well."""
        for _, rows in self.file.blocks():
            yield rows
        yield self.file.nulls.rows()

    def statistics(self) -> dict[str, Any]:
        """Return the sizes of pages, and the counts."""
        size = self.file.page_size
        pages = sum(-(-level // size) for level in level_sizes(self.file.num_items, size))
        return {"page_size": size, "num_pages": pages, "num_items": self.file.num_items, "bbox": self.file.total}

    def prewarm(self) -> None:
        """Read the items, and fill the cache with them."""
        for number in range(len(self.file.page_boxes)):
            self.file.page(number)

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.file.nbytes

    def _pages(self, query: Overlaps) -> NDArray[np.int64]:
        return np.flatnonzero(_overlap(self.file.page_boxes, query))


def _overlap(boxes: Boxes, query: Overlaps) -> NDArray[np.bool_]:
    low, high = (query.xmin, query.ymin), (query.xmax, query.ymax)
    result: NDArray[np.bool_] = np.all((boxes[:, :2] <= high) & (boxes[:, 2:] >= low), axis=1)
    return result
