"""Label list indexes: for every distinct item of the lists of a column the set of rows whose list has it.

_indices/{uuid}/bitmap_page_lookup.lance    see `index.bitmap.file`; the keys are items, a null item is one like others,
                                            and a list without items has no entry at all
    global buffer, metadata lance:label_list_nulls = its index    row address map of the rows whose list is null
                                                                  (from version 1 on)
    metadata lance_duck:exact = 1           the file has current items only

Details are an empty message, the version is 1. Rows go by their stable ids where the table has them.

When other writers merge segments they keep the items that rows had before an update: every row that their segments find
must be checked. Files that were written here, from rows or from such files, say that they are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.errors import CorruptError
from lance_duck.index.bitmap.build import SpilledRuns, write_bitmap_file
from lance_duck.index.bitmap.entries import remapped_rows
from lance_duck.index.bitmap.file import BitmapFile
from lance_duck.index.bitmap.keys import Int64s, can_be_key
from lance_duck.index.bitmap.kind import BitmapSegment, moved_entries
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, Answer, BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.query import ContainsAll, ContainsAny, Query
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map, row_address_map

_NULLS: Final = "lance:label_list_nulls"
_EXACT: Final = "lance_duck:exact"
_VERSION: Final = 1


class LabelListIndex(BitmapSegment):
    """An open segment, whose keys are the items of lists.

    Attributes:
        nulls: Rows whose list is null; None where the segment does not tell.
        is_exact: Whether every row that is found satisfies the query.
    """

    def __init__(self, file: BitmapFile, type_: pa.DataType) -> None:
        super().__init__(file, type_)
        self.nulls = _read_nulls(file)
        self.is_exact = file.metadata.get(_EXACT) == "1"

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the number of rows of an answer; None unless its bitmaps are in memory."""
        counts = [self.file.known(places) for places in self._places(query)]
        sizes = [size for size in counts if size is not None]
        if isinstance(query, ContainsAll):
            return min(sizes, default=None)
        return sum(sizes) if len(sizes) == len(counts) else None

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy a query; they are sure if the file is exact."""
        places = self._places(query)
        if isinstance(query, ContainsAll):
            rows = self._all(places)
        else:
            rows = self.file.rows(distinct(joined(places, np.int64)))
        return Answer.exactly(rows) if self.is_exact else Answer.at_most(rows)

    def _places(self, query: Query) -> list[Int64s]:
        """Return the places of the keys that equal each of the values that a query asks for."""
        return self.file.keys.equal(query.values) if isinstance(query, ContainsAny | ContainsAll) else []

    def _all(self, places: list[Int64s]) -> RowSet:
        if not all(map(len, places)):
            return RowSet({})
        each = self.file.each(distinct(np.concatenate(places)))
        row_sets = [RowSet.union(each[place] for place in alternatives.tolist()) for alternatives in places]
        rows = row_sets[0]
        for other in row_sets[1:]:
            rows = rows & other
        return rows


class LabelListKind(MergedKind):
    """Label list indexes."""

    name: str = "LabelList"
    type_url: str = "/lance.table.LabelListIndexDetails"
    versions: range = range(2)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed: lists of values that can have a bitmap index."""
        return bool((pt.is_list(type_) or pt.is_large_list(type_)) and can_be_key(type_.value_type))

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a query is one for any or all of some values; the index cannot answer an empty ALL."""
        if not self.supports(type_) or not isinstance(query, ContainsAny | ContainsAll):
            return False
        return isinstance(query, ContainsAny) or len(query.values) > 0

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> LabelListIndex:
        """Open a segment, which reads the keys."""
        return LabelListIndex(BitmapFile(files, type_.value_type), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of other segments and of new rows."""
        type_ = parts[0].index.type if rows is None else rows.schema.field(VALUE).type
        exact = all(part.index.is_exact for part in parts)
        # Rows with null lists that a part does not know are known to nobody: the result has version 0, then.
        tells = all(part.index.nulls is not None for part in parts)
        nulls = [remapped_rows(part.index.nulls, part.follow) for part in parts if part.index.nulls is not None]
        with SpilledRuns(type_.value_type, options) as runs:
            for batch in rows or ():
                lists, names = batch.column(VALUE), batch.column(ROW).to_numpy()
                nulls.append(RowSet.of(names[lists.is_null().to_numpy(zero_copy_only=False)]))
                runs.add(*_items(lists, names), batch.num_rows)
            sources = [*(moved_entries(part.index.file, part) for part in parts), *runs.sources()]
            buffers = [(_NULLS, row_address_map(RowSet.union(nulls)))] if tells else []
            write_bitmap_file(sources, type_.value_type, writer, buffers, [(_EXACT, "1")] if exact else [])
        return Details(_VERSION if tells else 0)


def _items(lists: pa.Array, names: NDArray[np.uint64]) -> tuple[pa.Array, NDArray[np.uint64]]:
    """Return the items of lists, and for each item the row of its list."""
    if lists.null_count:  # there may be items below a null list
        names = names[lists.is_valid().to_numpy(zero_copy_only=False)]
        lists = lists.drop_null()
    return pc.list_flatten(lists), names[pc.list_parent_indices(lists).to_numpy()]


def _read_nulls(file: BitmapFile) -> RowSet | None:
    place = file.metadata.get(_NULLS)
    if place is None:
        return None
    if not place.isdecimal() or len(place) > 9:
        raise CorruptError("place of the null lists", where=file.path, expected="a number", found=repr(place))
    return read_row_address_map(file.global_buffer(int(place)), file.path)


LABEL_LIST: Final[LabelListKind] = LabelListKind()
