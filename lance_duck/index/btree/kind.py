"""B-trees as a kind of index. `layout` has the files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from lance_duck.errors import UnsupportedError
from lance_duck.index.btree.entries import Entries
from lance_duck.index.btree.keys import has_prefixes, key_maker
from lance_duck.index.btree.layout import LOOKUP, layout_of
from lance_duck.index.btree.lookup import Lookup
from lance_duck.index.btree.reader import BTreeIndex
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import BuildOptions, Details, IndexKind, Part
from lance_duck.index.query import Among, Between, Except, Null, Query, StartsWith


class BTree:
    """See `IndexKind`."""

    name = "BTree"
    type_url = "/lance.table.BTreeIndexDetails"
    versions = range(2)
    rows_by = "version"
    needs_order = False

    def supports(self, type_: pa.DataType) -> bool:
        """Whether the values have an order: numbers, text, bytes, dates and times, booleans."""
        return key_maker(type_) is not None

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """See `IndexKind`."""
        if isinstance(query, Except):
            return self.answers(query.query, type_)
        return isinstance(query, Between | Among | Null) or (isinstance(query, StartsWith) and has_prefixes(type_))

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BTreeIndex:
        """See `IndexKind`."""
        make = key_maker(type_)
        if make is None:
            raise UnsupportedError("type of a B-tree", where=files.directory, found=type_)
        file = files.open(LOOKUP)
        layout = layout_of(file.metadata, file.path)
        data = [files.open(name) for name in layout.files]
        bounds = layout.bounds([each.num_rows for each in data], file.path)
        lookup = Lookup(file, bounds, layout.page_rows, type_, make)
        return BTreeIndex(lookup, Entries(data, lookup, type_, make), type_)

    def build(self, rows: pa.RecordBatchReader, writer: SegmentWriter, options: BuildOptions) -> Details:
        """See `IndexKind`."""
        raise UnsupportedError("building a B-tree")

    def merge(
        self, parts: Sequence[Part], rows: pa.RecordBatchReader | None, writer: SegmentWriter, options: BuildOptions
    ) -> Details:
        """See `IndexKind`."""
        raise UnsupportedError("merging B-trees")

    def can_follow(self) -> bool:
        """Entries can get new row names."""
        return True


BTREE: Final[IndexKind] = BTree()
