"""Bitmap indexes: for every distinct value of a column the set of its rows.

_indices/{uuid}/bitmap_page_lookup.lance    see `index.bitmap.file`; null is a value like others, floats with different
                                            bits are different values

Details are an empty message, the version is 0. Rows go by their stable ids where the table has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.distinct import difference_of
from lance_duck.index.bitmap.build import SpilledRuns, write_bitmap_file
from lance_duck.index.bitmap.entries import BitmapEntries, entry_blocks, remapped_entries
from lance_duck.index.bitmap.file import BitmapFile
from lance_duck.index.bitmap.keys import can_be_key, can_find
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, Answer, BuildOptions, Details, MergedKind, MergeInput
from lance_duck.index.query import Except, Query
from lance_duck.rows.row_set import RowSet


class BitmapSegment:
    """An open segment of bitmaps.

    Attributes:
        file: File of the segment.
        type: Storage type of the column.
    """

    def __init__(self, file: BitmapFile, type_: pa.DataType) -> None:
        self.file = file
        self.type = type_

    def statistics(self) -> dict[str, Any]:
        """Return the number of bitmaps."""
        return {"num_bitmaps": len(self.file.keys)}

    def prewarm(self) -> None:
        """Read the bitmaps, and keep as many as the cache holds."""
        self.file.prewarm()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.file.nbytes


class BitmapIndex(BitmapSegment):
    """An open segment, whose keys are the values of the column."""

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the number of rows of an answer; None if only reading bitmaps tells."""
        return self.file.known(self.file.keys.find(query))

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy a query; they are sure unless rows are known to have several keys."""
        rows = self._all_but(query) if isinstance(query, Except) else self.file.rows(self.file.keys.find(query))
        return Answer.exactly(rows) if self.file.is_sound else Answer.at_most(rows)

    def _all_but(self, query: Except) -> RowSet:
        """Return the rows of keys that fail a condition, or all rows minus those that satisfy it, if cheaper."""
        keys, matches = self.file.keys, self.file.keys.find(query)
        if 2 * len(matches) > len(keys.places):
            present = self.file.present()
            if present.is_disjoint:
                return present.rows - self.file.rows(difference_of(keys.places, matches))
        return self.file.rows(matches)


class BitmapKind(MergedKind):
    """Bitmap indexes."""

    name: str = "Bitmap"
    type_url: str = "/lance.table.BitmapIndexDetails"
    versions: range = range(1)
    rows_by: str = "id"
    reaches_into_lists: bool = False

    def supports(self, type_: pa.DataType) -> bool:
        """Return whether a column of a storage type can be indexed."""
        return can_be_key(type_)

    def answers(self, query: Query, type_: pa.DataType) -> bool:
        """Return whether a query is one for ranges, values, prefixes, nulls, or the complement of one of these."""
        return can_find(query, type_)

    def open(self, files: SegmentReader, type_: pa.DataType, details: Details) -> BitmapIndex:
        """Open a segment, which reads the keys."""
        return BitmapIndex(BitmapFile(files, type_), type_)

    def merge(
        self,
        parts: Sequence[MergeInput],
        rows: pa.RecordBatchReader | None,
        writer: SegmentWriter,
        options: BuildOptions,
    ) -> Details:
        """Write a segment of other segments and of new rows."""
        type_ = parts[0].index.type if rows is None else rows.schema.field(VALUE).type
        with SpilledRuns(type_, options) as runs:
            for batch in rows or ():
                runs.add(batch.column(VALUE), batch.column(ROW).to_numpy(), batch.num_rows)
            old = [moved_entries(part.index.file, part) for part in parts]
            write_bitmap_file([*old, *runs.sources()], type_, writer)
        return Details(0)


def moved_entries(file: BitmapFile, part: MergeInput) -> Iterator[BitmapEntries]:
    """Yield the entries of a segment with new names of their rows, without rows that are gone, batch by batch."""
    for entries in file.entries():
        for block in entry_blocks(entries):
            yield remapped_entries(block, part.follow, file.path)


BITMAP: Final[BitmapKind] = BitmapKind()
