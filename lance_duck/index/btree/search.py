"""An open B-tree, which converts queries to ranges of entries, and these to rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.arrow.join import joined
from lance_duck.arrow.types import number_dtype
from lance_duck.encoding.layouts.page_rows import expand_ranges
from lance_duck.index.btree.costs import END_GROWTH, END_SHARE, PAGES_AT_ONCE, VAGUE_SHARE, WIDE_PAGES
from lance_duck.index.btree.key_ranges import End, KeyBounds, ends_of, groups_of, key_ranges_of
from lance_duck.index.btree.keys import BTreeKeys, Int64s, key_maker
from lance_duck.index.btree.open import BTreeFiles
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.kind import Answer, Lives, Rows
from lance_duck.index.query import Among, Except, Null, Query
from lance_duck.rows.row_set import RowSet

_Ends = tuple[KeyBounds | End, KeyBounds | End]
"""The positions of the lower and the upper ends of key ranges."""
_NO_PLACES: Final = np.empty(0, np.int64)
_NO_ROWS: Final = np.empty(0, np.uint64)
_SHOWN_BYTES: Final = 10
_DAY_MS: Final = 86_400_000
_FIRST_YEAR, _LAST_YEAR = -262_143, 262_142  # years that pylance can format


class BTreeIndex:
    """An open B-tree. See `ScalarIndex`.

    Args:
        files: Files of the B-tree.
    """

    def __init__(self, files: BTreeFiles) -> None:
        self.lookup = files.lookup
        self.entries = files.entries
        self.type = files.type
        self._make = None if pa.types.is_floating(self.type) else key_maker(self.type)
        self._last: tuple[Query, list[_Ends]] | None = None
        self._last_one: tuple[Query, tuple[BTreeKeys, int | None] | None] | None = None

    def search(self, query: Query) -> Answer:
        """See `ScalarIndex`. The answer is exact."""
        one = self._one(query)
        return Answer.exactly(RowSet.of(self._rows(self._places(query)) if one is None else self._rows_of_one(*one)))

    def estimate(self, query: Query) -> int | None:
        """See `ScalarIndex`. Returns None for IN lists whose values may be spread over many pages."""
        one = self._one(query)
        if one is None:
            bound = self._places(query, vague=True).count
        else:
            _, first, stop = (0, 0, 0) if one[1] is None else self.lookup.span(one[1])
            bound = stop - first
        return None if isinstance(query, Among) and bound > self.lookup.num_rows // VAGUE_SHARE else bound

    @property
    def num_entries(self) -> int:
        """See `Counting`."""
        return self.lookup.num_rows

    def count(self, query: Query) -> int:
        """See `Counting`. Reads only the pages at the ends of spans."""
        return self._places(query).count

    def end_value(self, lives: Lives, *, greatest: bool) -> pa.Array | None:
        """See `Ordered`. Searches one page, then exponentially more entries, up to a fixed share of all entries."""
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
        """See `Naming`. Reads the row column of the entries without caching it."""
        for start in range(0, self.lookup.num_rows, INDEX_BLOCK_ROWS):
            yield from self.entries.ids([(start, min(start + INDEX_BLOCK_ROWS, self.lookup.num_rows))])

    def statistics(self) -> dict[str, Any]:
        """See `ScalarIndex`."""
        least, greatest = self.lookup.ends
        if not len(least):
            return {"min": "N/A", "max": "N/A", "num_pages": self.lookup.num_pages}
        return {"min": _value_text(least[0]), "max": _value_text(greatest[-1]), "num_pages": self.lookup.num_pages}

    def prewarm(self) -> None:
        """See `ScalarIndex`. Reads pages until the cache is more than half full."""
        self.entries.fill()

    @property
    def nbytes(self) -> int:
        """See `ScalarIndex`."""
        return self.lookup.nbytes + self.entries.nbytes

    def places(self, keys: BTreeKeys, after_equal: bool) -> Int64s:
        """Return the number of entries before each of the ascending keys. Nulls come before all keys.

        With `after_equal`, entries that equal the key also count.
        """
        cut = KeyBounds(self.lookup, keys, after_equal)
        self._settle([cut])
        return cut.places

    def _value(self, place: int) -> pa.Array:
        """Return the value of an entry, after checking the entry's page against the lookup."""
        self.entries.pages([int(np.searchsorted(self.lookup.bounds, place, side="right")) - 1])
        return self.entries.read(place, place + 1)[0]

    def _one(self, query: Query) -> tuple[BTreeKeys, int | None] | None:
        """Return the key of a single value, and the page with all its entries, which is None if it has no entries.

        Returns None if the entries may be on several pages, and for floats and other queries. The result for the last
        query is cached, for the search that follows an estimate.
        """
        if self._make is None or not isinstance(query, Among) or len(query.values) != 1:
            return None
        last = self._last_one
        if last is None or last[0] is not query:
            last = self._last_one = query, self._placed(self._make(query.values))
        return last[1]

    def _placed(self, key: BTreeKeys) -> tuple[BTreeKeys, int | None] | None:
        lookup = self.lookup
        page, _, is_within = lookup.places(key, True)
        number = int(page[0])
        if int(lookup.maxs.places(key, False)[0]) + lookup.first != number:
            return None
        return key, number if is_within[0] else None

    def _rows_of_one(self, key: BTreeKeys, page: int | None) -> Rows:
        if page is None:
            return _NO_ROWS
        (run,) = self.entries.pages([page])
        begin, end = (int(run.keys.places(key, after)[0]) + run.values_from - run.start for after in (False, True))
        return run.ids[begin:end]

    def _places(self, query: Query, *, vague: bool = False) -> _EntryRanges:
        """Return the ranges of entries that satisfy a query.

        With `vague`, the function does not read pages, and the ranges may contain additional entries.
        """
        nulls, end = self.lookup.nulls, self.lookup.num_rows
        if isinstance(query, Null):
            return _one_span(0, nulls)
        if isinstance(query, Except):
            if isinstance(query.query, Null):
                return _one_span(nulls, end)
            inside = self._ends(query.query)
            places = self._vague(inside, inner=True) if vague else self._exact(inside)
            return places.rest(nulls, end)
        ends = self._ends(query)
        return self._vague(ends) if vague else self._exact(ends)

    def _ends(self, query: Query) -> list[_Ends]:
        """Return the ends of a query's key ranges. The ends of the last query are cached for the search that follows.

        Cached ends may already be settled. Settling them again has no effect, even in concurrent threads.
        """
        last = self._last
        if last is None or last[0] is not query:
            last = self._last = query, [ends_of(each, self.lookup) for each in key_ranges_of(query, self.type)]
        return last[1]

    def _exact(self, ends: list[_Ends]) -> _EntryRanges:
        self._settle([cut for pair in ends for cut in pair])
        return _united(*_joined([(low.places, high.places) for low, high in ends]))

    def _settle(self, cuts: Sequence[KeyBounds | End]) -> None:
        for pages in _portions(sorted({page for cut in cuts for page in cut.groups})):
            for page, run in zip(pages, self.entries.pages(pages), strict=True):
                for cut in cuts:
                    cut.settle(page, run)

    def _vague(self, ends: list[_Ends], *, inner: bool = False) -> _EntryRanges:
        """Return the spans of the pages that overlap key ranges. With `inner`, leaves out pages that overlap partly."""
        lookup = self.lookup
        pairs = [(low.vague(lookup, after=inner), high.vague(lookup, after=not inner)) for low, high in ends]
        return _united(*_joined(pairs))

    def _rows(self, places: _EntryRanges) -> Rows:
        """Return the rows of ranges of entries. Short ranges use cached pages. Long ones are read without values."""
        wide = places.stops - places.starts > WIDE_PAGES * self.lookup.page_rows
        rows: list[Rows] = []
        if wide.any():
            rows += self.entries.ids(zip(places.starts[wide].tolist(), places.stops[wide].tolist(), strict=True))
            places = _EntryRanges(places.starts[~wide], places.stops[~wide])
        if len(places.starts):
            rows += self._rows_by_page(*_by_page(places, self.lookup.bounds))
        return rows[0] if len(rows) == 1 else np.concatenate([_NO_ROWS, *rows])

    def _rows_by_page(self, page: Int64s, pieces: _EntryRanges) -> Iterator[Rows]:
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
    """Split pages into batches that are read together."""
    return (pages[at : at + PAGES_AT_ONCE] for at in range(0, len(pages), PAGES_AT_ONCE))


def _value_text(value: pa.Scalar) -> str:
    """Format a value as in pylance's index statistics.

    Floats are written without an exponent, the first bytes of binary values as hexadecimal digits, and dates in ISO
    8601. Times, timestamps and durations are written as the stored integer.
    """
    type_ = value.type
    if pa.types.is_decimal(type_):
        number = f"Some({_unscaled(value)})" if value.is_valid else "None"
        return f"{number},{type_.precision},{type_.scale}"
    if not value.is_valid:
        return "NULL"
    if pa.types.is_floating(type_):
        return _float(value)
    if pa.types.is_boolean(type_):
        return "true" if value.as_py() else "false"
    if pa.types.is_date(type_):
        return _date(value.value if pa.types.is_date32(type_) else value.value // _DAY_MS)
    if pa.types.is_temporal(type_):
        return str(value.value)
    plain = value.as_py()
    if isinstance(plain, bytes):
        return plain[:_SHOWN_BYTES].hex().upper() + ("..." if len(plain) > _SHOWN_BYTES else "")
    return str(plain)


def _float(value: pa.Scalar) -> str:
    number = number_dtype(value.type).type(value.as_py())
    if np.isnan(number):
        return "NaN"
    return np.format_float_positional(number, unique=True, trim="-")


def _unscaled(value: pa.Scalar) -> int:
    width = value.type.byte_width
    return int.from_bytes(pa.array([value]).buffers()[1].to_pybytes()[:width], "little", signed=True)


def _date(days: int) -> str:
    day = str(np.datetime64(days, "D"))
    year, month_and_day = int(day[:-6]), day[-6:]
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return ""
    return f"{year:+05d}{month_and_day}" if not 0 <= year <= 9999 else f"{year:04d}{month_and_day}"


@dataclass(frozen=True, slots=True)
class _EntryRanges:
    """Non-empty ranges of entries that do not overlap.

    Attributes:
        starts: int64 (ranges,), position of the first entry of each range, ascending.
        stops: int64 (ranges,), one past the last entry of each range.
    """

    starts: Int64s
    stops: Int64s

    @property
    def count(self) -> int:
        """Total number of entries."""
        if len(self.starts) == 1:
            return int(self.stops[0]) - int(self.starts[0])
        return int((self.stops - self.starts).sum())

    def rest(self, start: int, stop: int) -> _EntryRanges:
        """Return the complement of the ranges within [start, stop). This span must contain all ranges."""
        starts, stops = np.append(start, self.stops), np.append(self.starts, stop)
        full = stops > starts
        return _EntryRanges(starts[full], stops[full])


def _one_span(start: int, stop: int) -> _EntryRanges:
    """Return a single range of entries, or zero ranges if it is empty."""
    count = int(stop > start)
    return _EntryRanges(np.full(count, start, np.int64), np.full(count, stop, np.int64))


def _united(starts: Int64s, stops: Int64s) -> _EntryRanges:
    """Return the union of ranges. These may overlap, be empty, and be in any order."""
    full = stops > starts
    if len(full) == 1 and full[0]:
        return _EntryRanges(starts, stops)
    if not full.all():
        starts, stops = starts[full], stops[full]
    if len(starts) < 2:
        return _EntryRanges(starts, stops)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    apart = starts[1:] > reach[:-1]
    return _EntryRanges(starts[np.append(True, apart)], reach[np.append(apart, True)])


def _by_page(places: _EntryRanges, bounds: Int64s) -> tuple[Int64s, _EntryRanges]:
    """Split ranges at page boundaries.

    Args:
        places: The ranges.
        bounds: First entry of each page, ascending, followed by the number of entries.

    Returns:
        The page of each resulting range, and the ranges.
    """
    first = bounds.searchsorted(places.starts, side="right") - 1
    last = bounds.searchsorted(places.stops, side="left") - 1
    counts = last - first + 1
    if counts[0] == 1 if len(counts) == 1 else (counts == 1).all():
        return first, places
    span = np.repeat(np.arange(len(counts)), counts)
    page = np.arange(len(span)) - np.repeat(np.cumsum(counts) - counts, counts) + first[span]
    starts = np.maximum(places.starts[span], bounds[page])
    return page, _EntryRanges(starts, np.minimum(places.stops[span], bounds[page + 1]))
