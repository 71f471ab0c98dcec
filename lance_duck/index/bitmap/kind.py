"""The index kinds of bitmap indexes and label list indexes. `layout` describes the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

from lance_duck.index.bitmap.build import SpilledRuns, list_items
from lance_duck.index.bitmap.keys import can_be_key, can_find
from lance_duck.index.bitmap.layout import EXACT, LIST_NULLS, LIST_VERSION
from lance_duck.index.bitmap.merge import merged_entries, moved_entries, remapped_rows
from lance_duck.index.bitmap.open import BitmapFile
from lance_duck.index.bitmap.search import BitmapIndex, LabelListIndex
from lance_duck.index.bitmap.write import write_bitmap_file
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.query import ContainsAll, ContainsAny, Query
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map


class BitmapKind(MergedKind):
    """Bitmap indexes. Their keys are the values of a column."""

    name: str = "Bitmap"
    type_url: str = "/lance.table.BitmapIndexDetails"
    versions: range = range(1)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed."""
        return can_be_key(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return True for ranges, values, prefixes and nulls, and for the complement of one of these."""
        return can_find(query, type_)

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BitmapIndex:
        """Open a segment, and read its keys."""
        return BitmapIndex(BitmapFile(files, type_), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        type_ = parts[0].index.type if rows is None else rows.schema.field(VALUE).type
        with SpilledRuns(type_, options) as runs:
            for batch in rows or ():
                runs.add(batch.column(VALUE), batch.column(ROW).to_numpy(), batch.num_rows)
            old = [moved_entries(part.index.file, part) for part in parts]
            write_bitmap_file(merged_entries([*old, *runs.sources()]), type_, writer)
        return Details(0)


class LabelListKind(MergedKind):
    """Label list indexes. Their keys are the items of a column's lists."""

    name: str = "LabelList"
    type_url: str = "/lance.table.LabelListIndexDetails"
    versions: range = range(2)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed: lists of values that can have a bitmap index."""
        return bool((pt.is_list(type_) or pt.is_large_list(type_)) and can_be_key(type_.value_type))

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return True for queries for any or all of some values. An empty `ContainsAll` is not supported."""
        if not self.supports(type_) or not isinstance(query, ContainsAny | ContainsAll):
            return False
        return isinstance(query, ContainsAny) or len(query.values) > 0

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> LabelListIndex:
        """Open a segment, and read its keys."""
        return LabelListIndex(BitmapFile(files, type_.value_type), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment from other segments and new rows."""
        type_ = parts[0].index.type if rows is None else rows.schema.field(VALUE).type
        exact = all(part.index.is_exact for part in parts)
        # If a source lacks the rows with null lists, the result lacks them as well and has version 0.
        tells = all(part.index.nulls is not None for part in parts)
        nulls = [remapped_rows(part.index.nulls, part.follow) for part in parts if part.index.nulls is not None]
        with SpilledRuns(type_.value_type, options) as runs:
            for batch in rows or ():
                lists, names = batch.column(VALUE), batch.column(ROW).to_numpy()
                nulls.append(RowSet.of(names[lists.is_null().to_numpy(zero_copy_only=False)]))
                runs.add(*list_items(lists, names), batch.num_rows)
            sources = [*(moved_entries(part.index.file, part) for part in parts), *runs.sources()]
            buffers = [(LIST_NULLS, row_address_map(RowSet.union(nulls)))] if tells else []
            write_bitmap_file(
                merged_entries(sources), type_.value_type, writer, buffers, [(EXACT, "1")] if exact else []
            )
        return Details(LIST_VERSION if tells else 0)


BITMAP: Final[BitmapKind] = BitmapKind()
LABEL_LIST: Final[LabelListKind] = LabelListKind()
