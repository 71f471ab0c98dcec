"""The B-tree index kind. `layout` describes the files.

Parameter zone_size: number of entries per page, 4096 by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.index.btree.build import write_tree
from lance_duck.index.btree.keys import has_prefixes, key_maker
from lance_duck.index.btree.layout import PAGE_ROWS
from lance_duck.index.btree.merge import SourceTree
from lance_duck.index.btree.open import BTreeFiles
from lance_duck.index.btree.search import BTreeIndex
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import VALUE, BuildOptions, Details, IndexKind, MergeInput
from lance_duck.index.query import Among, Between, Except, HasPrefix, Null, Query

_PAGE_ROWS: Final = "zone_size"


class BTreeKind:
    """See `IndexKind`."""

    name = "BTree"
    type_url = "/lance.table.BTreeIndexDetails"
    versions = range(2)
    rows_by = "version"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a type is ordered: numbers, strings, binary values, dates, times and booleans are."""
        return key_maker(type_) is not None

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """See `IndexKind`."""
        if isinstance(query, Except):
            return self.answers(query.query, type_)
        return isinstance(query, Between | Among | Null) or (isinstance(query, HasPrefix) and has_prefixes(type_))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BTreeIndex:
        """See `IndexKind`."""
        return BTreeIndex(BTreeFiles(files, type_))

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """See `IndexKind`."""
        write_tree([], rows, rows.schema.field(VALUE).type, writer, options, _page_rows(options))
        return _details(options)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """See `IndexKind`."""
        sources = [SourceTree(part.index, part.follow) for part in parts]
        type_ = sources[0].index.type if rows is None else rows.schema.field(VALUE).type
        write_tree(sources, rows, type_, writer, options, sources[0].index.lookup.page_rows)
        return _details(options)

    def can_follow(self) -> bool:
        """Return True: a segment can be rewritten with new row addresses."""
        return True


def _page_rows(options: BuildOptions) -> int:
    value = options.parameters.get(_PAGE_ROWS)
    if value is None:
        return PAGE_ROWS
    if type(value) is not int or not 0 < value < 1 << 31:
        raise InvalidInputError(f"{_PAGE_ROWS} of a B-tree", expected="a number above 0", found=value)
    return value


def _details(options: BuildOptions) -> Details:
    return Details(0 if options.stable_row_ids else 1)


BTREE: Final[IndexKind] = BTreeKind()
