"""An open B-tree: queries become places of entries, and these rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.encoding.layouts.page_rows import expand_ranges
from lance_duck.index.btree.bounds import End, KeyBounds, ends_of, groups_of
from lance_duck.index.btree.costs import END_GROWTH, END_SHARE, PAGES_AT_ONCE, VAGUE_SHARE, WIDE_PAGES
from lance_duck.index.btree.entries import BTreeEntries, Rows
from lance_duck.index.btree.entry_ranges import EntryRanges, by_page, one_span, united
from lance_duck.index.btree.key_ranges import key_ranges_of
from lance_duck.index.btree.keys import BTreeKeys
from lance_duck.index.btree.lookup import Lookup
from lance_duck.index.btree.statistics import value_text
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.kind import Answer, Lives
from lance_duck.index.query import Among, Except, Null, Query
from lance_duck.rows.row_set import RowSet

Int64s = NDArray[np.int64]
_Ends = tuple[KeyBounds | End, KeyBounds | End]
"""The lower and the upper ends of key ranges."""

_NO_PLACES: Final = np.empty(0, np.int64)
_NO_ROWS: Final = np.empty(0, np.uint64)


class BTreeIndex:
    """An open B-tree. See `ScalarIndex`.

    Args:
        lookup: Pages of the B-tree.
        entries: Entries of the B-tree.
        type_: Type of the values.
    """

    def __init__(self, lookup: Lookup, entries: BTreeEntries, type_: pa.DataType) -> None:
        self.lookup = lookup
        self.entries = entries
        self.type = type_
        self._last: tuple[Query, list[_Ends]] | None = None

    def search(self, query: Query) -> Answer:
        """See `ScalarIndex`; the answer is exact."""
        return Answer.exactly(RowSet.of(self._rows(self._places(query))))

    def estimate(self, query: Query) -> int | None:
        """See `ScalarIndex`; None for many values that may be spread over many pages."""
        bound = self._places(query, vague=True).count
        return None if isinstance(query, Among) and bound > self.lookup.num_rows // VAGUE_SHARE else bound

    @property
    def num_entries(self) -> int:
        """See `Counting`."""
        return self.lookup.num_rows

    def count(self, query: Query) -> int:
        """See `Counting`; reads the pages at the ends of spans only."""
        return self._places(query).count

    def end_value(self, lives: Lives, *, greatest: bool) -> pa.Array | None:
        """See `Ordered`; looks at a page, then at ever more entries, up to a share of all."""
        first, stop = self.lookup.nulls, self.lookup.num_rows
        most = min(stop - first, max(self.lookup.page_rows, (stop - first) // END_SHARE))
        at, width = 0, self.lookup.page_rows
        while at < most:
            width = min(width, most - at)
            start = stop - at - width if greatest else first + at
            living = np.flatnonzero(lives(joined(self.entries.ids([(start, start + width)]), np.uint64)))
            if len(living):
                return self._value(start + int(living[-1 if greatest else 0]))
            at, width = at + width, width * END_GROWTH
        return None if most < stop - first else pa.array([], self.type)

    def names(self) -> Iterator[Rows]:
        """See `Naming`; reads the pages of rows without caching them."""
        for start in range(0, self.lookup.num_rows, INDEX_BLOCK_ROWS):
            yield from self.entries.ids([(start, min(start + INDEX_BLOCK_ROWS, self.lookup.num_rows))])

    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex`."""
        least, greatest = self.lookup.ends
        if not len(least):
            return {"min": "N/A", "max": "N/A", "num_pages": self.lookup.num_pages}
        return {"min": value_text(least[0]), "max": value_text(greatest[-1]), "num_pages": self.lookup.num_pages}

    def prewarm(self) -> None:
        """See `ScalarIndex`; reads as many pages as the cache holds."""
        self.entries.fill()

    @property
    def nbytes(self) -> int:
        """See `ScalarIndex`."""
        return self.lookup.nbytes + self.entries.nbytes

    def places(self, keys: BTreeKeys, after_equal: bool) -> Int64s:
        """Return, for each ascending key, the number of entries that are null or less, or equal with `after_equal`."""
        cut = KeyBounds(self.lookup, keys, after_equal)
        self._settle([cut])
        return cut.places

    def _value(self, place: int) -> pa.Array:
        """Return the value of an entry, whose page is checked against the lookup."""
        self.entries.pages([int(np.searchsorted(self.lookup.bounds, place, side="right")) - 1])
        return self.entries.read(place, place + 1)[0]

    def _places(self, query: Query, *, vague: bool = False) -> EntryRanges:
        """Return the entries that satisfy a query; if vague, without reading pages, and therefore too many."""
        nulls, end = self.lookup.nulls, self.lookup.num_rows
        if isinstance(query, Null):
            return one_span(0, nulls)
        if isinstance(query, Except):
            if isinstance(query.query, Null):
                return one_span(nulls, end)
            inside = self._ends(query.query)
            places = self._vague(inside, inner=True) if vague else self._exact(inside)
            return places.rest(nulls, end)
        ends = self._ends(query)
        return self._vague(ends) if vague else self._exact(ends)

    def _ends(self, query: Query) -> list[_Ends]:
        """Return the ends of the key ranges of a query; the last ones are cached: a search follows an estimate.

        They may be settled already; to settle them again, in several threads at once, changes nothing.
        """
        last = self._last
        if last is None or last[0] is not query:
            last = self._last = query, [ends_of(each, self.lookup) for each in key_ranges_of(query, self.type)]
        return last[1]

    def _exact(self, ends: list[_Ends]) -> EntryRanges:
        self._settle([cut for pair in ends for cut in pair])
        return united(*_joined([(low.places, high.places) for low, high in ends]))

    def _settle(self, cuts: Sequence[KeyBounds | End]) -> None:
        for pages in _portions(sorted({page for cut in cuts for page in cut.groups})):
            for page, run in zip(pages, self.entries.pages(pages), strict=True):
                for cut in cuts:
                    cut.settle(page, run)

    def _vague(self, ends: list[_Ends], *, inner: bool = False) -> EntryRanges:
        """Return the spans of whole pages around the entries of key ranges, or with `inner` within them."""
        lookup = self.lookup
        pairs = [(low.vague(lookup, after=inner), high.vague(lookup, after=not inner)) for low, high in ends]
        return united(*_joined(pairs))

    def _rows(self, places: EntryRanges) -> Rows:
        """Return the rows of entries: from cached pages, or without values where many entries are adjacent."""
        wide = places.stops - places.starts > WIDE_PAGES * self.lookup.page_rows
        rows: list[Rows] = []
        if wide.any():
            rows += self.entries.ids(zip(places.starts[wide].tolist(), places.stops[wide].tolist(), strict=True))
            places = EntryRanges(places.starts[~wide], places.stops[~wide])
        if len(places.starts):
            rows += self._rows_by_page(*by_page(places, self.lookup.bounds))
        return rows[0] if len(rows) == 1 else np.concatenate([_NO_ROWS, *rows])

    def _rows_by_page(self, page: Int64s, pieces: EntryRanges) -> Iterator[Rows]:
        groups = groups_of(page)
        for pages in _portions(list(groups)):
            for number, run in zip(pages, self.entries.pages(pages), strict=True):
                begin, end = groups[number]
                if end - begin == 1:
                    yield run.ids[int(pieces.starts[begin]) - run.start : int(pieces.stops[begin]) - run.start]
                else:
                    yield run.ids[expand_ranges(pieces.starts[begin:end], pieces.stops[begin:end]) - run.start]


def _joined(pairs: list[tuple[Int64s, Int64s]]) -> tuple[Int64s, Int64s]:
    if len(pairs) == 1:
        return pairs[0]
    starts, stops = ([pair[i] for pair in pairs] for i in (0, 1))
    return np.concatenate([_NO_PLACES, *starts]), np.concatenate([_NO_PLACES, *stops])


def _portions(pages: list[int]) -> Iterator[list[int]]:
    """Cut pages into portions that are read together."""
    return (pages[at : at + PAGES_AT_ONCE] for at in range(0, len(pages), PAGES_AT_ONCE))
