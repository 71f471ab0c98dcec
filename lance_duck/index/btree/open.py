"""The open files of a B-tree: the page lookup in memory, and entries that are read on demand and cached.

`layout` describes the files.

The position of an entry is the number of entries before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined, joined_arrays
from lance_duck.cache import SizedCache
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.btree.costs import PAGES_AT_ONCE, TREE_BYTES
from lance_duck.index.btree.keys import BTreeKeys, Int64s, key_maker
from lance_duck.index.btree.layout import DATA, IDS, LOOKUP, MAX, MIN, NULL_COUNT, PAGE, VALUES, EntryLayout, layout_of
from lance_duck.index.files import SegmentFile, SegmentReader
from lance_duck.index.kind import Rows
from lance_duck.store import Request, gather, run


class Lookup:
    """The pages of a B-tree: nulls come first, then values in ascending order.

    The position of an entry is the number of entries before it.

    Args:
        file: page_lookup.lance.
        layout: How entries are divided into pages and files.
        rows: Number of entries of each file.
        type_: Type of the values.
        make: Converts an array of values to B-tree keys.

    Attributes:
        bounds: int64 (pages + 1,), first entry of each page, followed by the number of entries.
        page_rows: Number of entries per page.
        nulls: Number of null entries, which come first.
        num_rows: Number of entries.
        first: First page with a value, or the number of pages if all entries are null.
        mins: Minimum key of each page from `first` on, except for page `first` if it begins with nulls.
        maxs: Maximum key of each page from `first` on.
        ends: The min and max columns of the file, from `first` on. They may contain nulls.

    Raises:
        CorruptError: Pages overlap, or the counts contradict each other.
    """

    def __init__(
        self,
        file: SegmentFile,
        layout: EntryLayout,
        rows: list[int],
        type_: pa.DataType,
        make: Callable[[pa.Array], BTreeKeys],
    ) -> None:
        mins, maxs, null_counts, numbers = _columns(file, type_)
        pages = len(numbers)
        bounds = layout.bounds(rows, pages, file.path)
        order = np.argsort(numbers, kind="stable")
        if not np.array_equal(numbers[order], np.arange(pages)):
            raise CorruptError(
                "invalid page numbers of the B-tree", where=file.path, expected=f"0 … {pages - 1}, each once"
            )
        if not np.array_equal(order, numbers):
            mins, maxs, null_counts = mins.take(pa.array(order)), maxs.take(pa.array(order)), null_counts[order]
        self.where = file.path
        self.bounds = bounds
        self.page_rows = layout.page_rows
        self.num_rows = int(bounds[-1])
        self.nulls = int(null_counts.sum())
        self._check_nulls(mins, maxs, null_counts)
        self.first = int(np.searchsorted(bounds[1:], self.nulls, side="right"))
        self.straddles = self.first < pages and int(null_counts[self.first]) > 0
        self.ends = (mins.slice(self.first), maxs.slice(self.first))
        self.mins = make(mins.slice(self.first + self.straddles))
        self.maxs = make(maxs.slice(self.first))
        self._starts = bounds[self.first :].copy()
        self._starts[0] = self.nulls
        if not self._ascends():
            raise CorruptError("the pages of the B-tree are not in order", where=file.path)

    @property
    def num_pages(self) -> int:
        """Number of pages."""
        return len(self.bounds) - 1

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        ends = sum(end.nbytes for end in self.ends)
        return int(self.bounds.nbytes + self._starts.nbytes + ends) + self.mins.nbytes + self.maxs.nbytes

    def places(self, keys: BTreeKeys, after_equal: bool) -> tuple[Int64s, Int64s, NDArray[np.bool_]]:
        """Find the pages that keys belong to.

        Returns:
            The page of each key, the position of the page's first value, and a mask of the keys that lie behind this
            value. For all other keys, the position of the page's first value is also the position of the key.
        """
        page = self.maxs.places(keys, after_equal)
        within = self.mins.places(keys, after_equal) + self.straddles > page
        return page + self.first, self._starts[page], within

    def span(self, page: int) -> tuple[int, int, int]:
        """Return the positions of a page's first entry, first value and end."""
        start, stop = int(self.bounds[page]), int(self.bounds[page + 1])
        return start, min(max(start, self.nulls), stop), stop

    def least(self, page: int) -> BTreeKeys | None:
        """Return the minimum key of a page with values. Returns None if the lookup does not store it."""
        at = page - self.first - self.straddles
        return self.mins.part(at, at + 1) if at >= 0 else None

    def greatest(self, page: int) -> BTreeKeys:
        """Return the maximum key of a page with values."""
        at = page - self.first
        return self.maxs.part(at, at + 1)

    def _check_nulls(self, mins: pa.Array, maxs: pa.Array, counts: Int64s) -> None:
        rows = np.diff(self.bounds)
        expected = np.clip(self.nulls - self.bounds[:-1], 0, rows)
        if not np.array_equal(counts, expected):
            raise CorruptError("the null counts of the B-tree are not in order", where=self.where)
        if not np.array_equal(_is_null(mins), counts > 0) or not np.array_equal(_is_null(maxs), counts == rows):
            raise CorruptError("page bounds and null counts of the B-tree disagree", where=self.where)

    def _ascends(self) -> bool:
        return self.mins.is_ascending() and self.maxs.is_ascending() and self._interleaved()

    def _interleaved(self) -> bool:
        """Return whether the pages do not overlap, and the minimum of each page is at most its maximum."""
        positions = np.arange(len(self.mins), dtype=np.int64) + self.straddles
        below, upto = self.maxs.places(self.mins, False), self.maxs.places(self.mins, True)
        return bool((below <= positions).all() and (upto >= positions).all())


def _columns(file: SegmentFile, type_: pa.DataType) -> tuple[pa.Array, pa.Array, Int64s, Int64s]:
    for name, expected_type in ((MIN, type_), (MAX, type_), (NULL_COUNT, pa.uint32()), (PAGE, pa.uint32())):
        file.column(name, expected_type)
    mins, maxs, null_counts, numbers = file.read([MIN, MAX, NULL_COUNT, PAGE])
    if null_counts.null_count or numbers.null_count:
        raise CorruptError("the lookup table of the B-tree contains nulls", where=file.path, expected="no nulls")
    return mins, maxs, *(array.to_numpy(zero_copy_only=False).astype(np.int64) for array in (null_counts, numbers))


def _is_null(values: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return flags


@dataclass(frozen=True, slots=True)
class Run:
    """Adjacent entries.

    Attributes:
        start: Position of the first entry.
        values_from: Position of the first non-null entry.
        keys: Keys of the non-null entries.
        ids: uint64 (entries,), rows of all entries.
    """

    start: int
    values_from: int
    keys: BTreeKeys
    ids: Rows

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.keys.nbytes + int(self.ids.nbytes)


class BTreeEntries:
    """A reader of entries. Safe to use from several threads.

    Args:
        files: Files of the entries, in order.
        lookup: The page lookup.
        type_: Type of the values.
        make: Converts an array of values to B-tree keys.
        limit: Size of the page cache, in bytes.
    """

    def __init__(
        self,
        files: Sequence[SegmentFile],
        lookup: Lookup,
        type_: pa.DataType,
        make: Callable[[pa.Array], BTreeKeys],
        limit: int = TREE_BYTES,
    ) -> None:
        self._files = files
        self._firsts = [0]
        for file in files:
            self._firsts.append(self._firsts[-1] + file.num_rows)
            file.column(VALUES, type_)
            file.column(IDS, pa.uint64())
        self._lookup = lookup
        self._type = type_
        self._make = make
        self._limit = limit
        self._runs: SizedCache[Run] = SizedCache(limit, lambda run: run.nbytes)

    @property
    def nbytes(self) -> int:
        """Size of the cached entries, in bytes."""
        return self._runs.nbytes

    def pages(self, numbers: Iterable[int]) -> list[Run]:
        """Return the entries of pages. Uncached pages are read in one round trip."""
        pages = list(numbers)
        runs = {page: entries for page in pages if (entries := self._runs.find(page)) is not None}
        new_pages = [page for page in pages if page not in runs]
        if new_pages:
            for page, entries in zip(new_pages, self._read_pages(new_pages), strict=True):
                runs[page] = entries
                self._runs.put(page, entries)
        return [runs[page] for page in pages]

    def ids(self, spans: Iterable[tuple[int, int]]) -> list[Rows]:
        """Read the rows of spans of entries in one round trip."""
        pieces = [piece for span in spans for piece in self._requests(IDS, *span)]
        return [self._checked_ids(array) for array in run(gather(pieces))] if pieces else []

    def read(self, start: int, stop: int) -> tuple[pa.Array, Rows]:
        """Read the values and rows of a range of entries, without caching them."""
        values, ids = (self._requests(name, start, stop) for name in (VALUES, IDS))
        arrays = run(gather([*values, *ids]))
        pair = (joined_arrays(arrays[: len(values)], self._type), arrays[len(values) :])
        return pair[0], joined((self._checked_ids(array) for array in pair[1]), np.uint64)

    def fill(self) -> None:
        """Read pages in order until the cache is more than half full."""
        pages = list(range(self._lookup.num_pages))
        for at in range(0, len(pages), PAGES_AT_ONCE):
            self.pages(pages[at : at + PAGES_AT_ONCE])
            if self.nbytes * 2 > self._limit:
                break

    def _read_pages(self, pages: list[int]) -> list[Run]:
        spans = [self._lookup.span(page) for page in pages]
        requests = [piece for start, _, stop in spans for piece in self._both(start, stop)]
        arrays = run(gather(requests))
        pairs = zip(pages, spans, arrays[::2], arrays[1::2], strict=True)
        return [self._run(page, span, values, ids) for page, span, values, ids in pairs]

    def _both(self, start: int, stop: int) -> list[Request[pa.Array]]:
        """Return the requests for a page's values and rows. A page is never split across files."""
        return [*self._requests(VALUES, start, stop), *self._requests(IDS, start, stop)]

    def _requests(self, name: str, start: int, stop: int) -> list[Request[pa.Array]]:
        places = zip(self._files, self._firsts, self._firsts[1:], strict=False)
        return [
            file.column(name).read(slice(max(start, first) - first, min(stop, end) - first))
            for file, first, end in places
            if max(start, first) < min(stop, end)
        ]

    def _run(self, page: int, span: tuple[int, int, int], values: pa.Array, ids: pa.Array) -> Run:
        start, values_from, _ = span
        nulls = values_from - start
        if values.null_count != nulls or values.slice(nulls).null_count:
            raise CorruptError(f"wrong null count in page {page}", where=self._lookup.where, expected=nulls)
        keys = self._make(values.slice(nulls))
        if len(keys) and not self._fits(page, keys):
            raise CorruptError(f"page {page} disagrees with the lookup table", where=self._lookup.where)
        return Run(start, values_from, keys, self._checked_ids(ids))

    def _fits(self, page: int, keys: BTreeKeys) -> bool:
        least, last = self._lookup.least(page), keys.part(len(keys) - 1, len(keys))
        return (
            keys.is_ascending()
            and last.equals(self._lookup.greatest(page))
            and (least is None or least.equals(keys.part(0, 1)))
        )

    def _checked_ids(self, ids: pa.Array) -> Rows:
        if ids.null_count:
            raise CorruptError("the rows of the B-tree contain nulls", where=self._lookup.where, expected="no nulls")
        rows: Rows = ids.to_numpy()
        return rows


class BTreeFiles:
    """The open files of a B-tree.

    Attributes:
        lookup: Pages of the B-tree.
        entries: Entries of the B-tree.
        type: Type of the values.

    Args:
        files: Files of the segment.
        type_: Storage type of the values.
        cache_bytes: Size of the page cache, in bytes.

    Raises:
        NotFoundError: A file is missing.
        CorruptError: The files are not a B-tree over this type, or contradict each other.
        UnsupportedError: The type is not ordered.
    """

    def __init__(self, files: SegmentReader, type_: pa.DataType, cache_bytes: int = TREE_BYTES) -> None:
        make = key_maker(type_)
        if make is None:
            raise UnsupportedError("B-trees do not support values of this type", where=files.directory, found=type_)
        files.open_ahead([LOOKUP, DATA])
        file = files.open(LOOKUP)
        layout = layout_of(file.metadata, file.path)
        data = [files.open(name) for name in layout.files]
        self.type = type_
        self.lookup = Lookup(file, layout, [each.num_rows for each in data], type_, make)
        self.entries = BTreeEntries(data, self.lookup, type_, make, cache_bytes)
