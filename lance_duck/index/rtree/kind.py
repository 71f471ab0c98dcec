"""The R-tree index kind. `layout` describes the files.

Parameter page_size: number of boxes per page, 4096 by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.query import Null, Overlaps, Query
from lance_duck.index.rtree.boxes import is_geometry
from lance_duck.index.rtree.build import Items
from lance_duck.index.rtree.layout import DEFAULT_PAGE_SIZE, PAGE_SIZE
from lance_duck.index.rtree.merge import add_items
from lance_duck.index.rtree.open import RTreeFile
from lance_duck.index.rtree.search import RTreeIndex
from lance_duck.index.rtree.write import write_tree_files


class RTreeKind(MergedKind):
    """R-trees over columns of geometries."""

    name: str = "RTree"
    type_url: str = "/lance.index.pb.RTreeIndexDetails"
    versions: range = range(1)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a storage type can hold geometries. The column must also declare that it does."""
        return is_geometry(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return True for boxes and nulls."""
        return isinstance(query, Overlaps | Null)

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> RTreeIndex:
        """Open a segment, and read the boxes of its pages."""
        return RTreeIndex(RTreeFile(files), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        size = parts[0].index.file.page_size if parts else DEFAULT_PAGE_SIZE
        size = _page_size(options.parameters.get(PAGE_SIZE, size))
        with Items(options) as items:
            for part in parts:
                add_items(items, part.index.file, part.follow)
            for batch in rows or ():
                items.add_rows(batch)
            return write_tree_files(items, size, writer)


def _page_size(value: Any) -> int:
    if type(value) is not int or not 1 < value < 1 << 31:
        raise InvalidInputError(f"{PAGE_SIZE} of an R-tree", expected="a whole number above 1", found=repr(value))
    return value


RTREE: Final[RTreeKind] = RTreeKind()
