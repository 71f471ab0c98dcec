"""Searches of an open segment, which find the keys that satisfy a query, and their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.arrow.distinct import difference_of, distinct
from lance_duck.arrow.join import joined
from lance_duck.index.bitmap.keys import Int64s
from lance_duck.index.bitmap.layout import EXACT
from lance_duck.index.bitmap.open import BitmapFile, null_lists
from lance_duck.index.kind import Answer
from lance_duck.index.query import ContainsAll, ContainsAny, Except, Query
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
        """Read the bitmaps, and fill the cache with them."""
        self.file.prewarm()

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.file.nbytes


class BitmapIndex(BitmapSegment):
    """An open segment, whose keys are the values of the column."""

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the result's row count. Returns None if bitmaps must be read."""
        return self.file.known(self.file.keys.find(query))

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy a query. The result is exact unless rows may have several keys."""
        rows = self._all_but(query) if isinstance(query, Except) else self.file.rows(self.file.keys.find(query))
        return Answer.exactly(rows) if self.file.is_sound else Answer.at_most(rows)

    def _all_but(self, query: Except) -> RowSet:
        """Return the non-null rows that do not satisfy a condition.

        Unites the rows of the keys that do not satisfy the condition. If most keys do not satisfy it, the rows of the
        other keys are subtracted from all rows instead, provided that no row has several keys.
        """
        keys, matches = self.file.keys, self.file.keys.find(query)
        if 2 * len(matches) > len(keys.places):
            present = self.file.present()
            if present.is_disjoint:
                return present.rows - self.file.rows(difference_of(keys.places, matches))
        return self.file.rows(matches)


class LabelListIndex(BitmapSegment):
    """An open segment, whose keys are the items of lists.

    Attributes:
        nulls: Rows whose list is null, or None if the segment does not store them.
        is_exact: Whether all rows that a search finds satisfy the query.
    """

    def __init__(self, file: BitmapFile, type_: pa.DataType) -> None:
        super().__init__(file, type_)
        self.nulls = null_lists(file)
        self.is_exact = file.metadata.get(EXACT) == "1"

    def estimate(self, query: Query) -> int | None:
        """Return an upper bound of the result's row count. Returns None if uncached bitmaps are needed."""
        counts = [self.file.known(places) for places in self._places(query)]
        sizes = [size for size in counts if size is not None]
        if isinstance(query, ContainsAll):
            return min(sizes, default=None)
        return sum(sizes) if len(sizes) == len(counts) else None

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy a query. The result is exact if the file is."""
        places = self._places(query)
        if isinstance(query, ContainsAll):
            rows = self._all(places)
        else:
            rows = self.file.rows(distinct(joined(places, np.int64)))
        return Answer.exactly(rows) if self.is_exact else Answer.at_most(rows)

    def _places(self, query: Query) -> list[Int64s]:
        """Return the positions of the keys that equal each value of a query."""
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
