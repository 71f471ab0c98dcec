"""The page lookup of a B-tree, in memory: the range of values of each page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.btree.keys import BTreeKeys
from lance_duck.index.btree.layout import MAX, MIN, NULL_COUNT, PAGE, EntryLayout
from lance_duck.index.files import SegmentFile

Int64s = NDArray[np.int64]


class Lookup:
    """The pages of a B-tree: nulls come first, then values in ascending order.

    The place of an entry is the number of entries before it.

    Args:
        file: page_lookup.lance.
        layout: Division of the entries into pages and files.
        rows: Number of entries of each file.
        type_: Type of the values.
        make: Makes keys of values.

    Attributes:
        bounds: First entry of each page, then the number of entries.
        page_rows: Number of entries of a page.
        nulls: Number of null entries, which come first.
        num_rows: Number of entries.
        first: First page with a value; the number of pages when there is none.
        mins: Least key of each page from `first` on, except for that page when it begins with nulls.
        maxs: Greatest key of each page from `first` on.
        ends: Values of mins and maxs, as in the file; null where there is none.

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
            raise CorruptError("page numbers of a B-tree", where=file.path, expected=f"0 … {pages - 1}, each once")
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
            raise CorruptError("pages of a B-tree are not in order", where=file.path)

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
            For each key its page; the place where that page's values begin; and whether the key lies within the page,
            after its first value. If it does not, the place is that of the key.
        """
        page = self.maxs.places(keys, after_equal)
        within = self.mins.places(keys, after_equal) + self.straddles > page
        return page + self.first, self._starts[page], within

    def span(self, page: int) -> tuple[int, int, int]:
        """Return the first entry of a page, its first value, and its end."""
        start, stop = int(self.bounds[page]), int(self.bounds[page + 1])
        return start, min(max(start, self.nulls), stop), stop

    def least(self, page: int) -> BTreeKeys | None:
        """Return the least key of a page that has values; None if it is not known."""
        at = page - self.first - self.straddles
        return self.mins.part(at, at + 1) if at >= 0 else None

    def greatest(self, page: int) -> BTreeKeys:
        """Return the greatest key of a page that has values."""
        at = page - self.first
        return self.maxs.part(at, at + 1)

    def _check_nulls(self, mins: pa.Array, maxs: pa.Array, counts: Int64s) -> None:
        rows = np.diff(self.bounds)
        expected = np.clip(self.nulls - self.bounds[:-1], 0, rows)
        if not np.array_equal(counts, expected):
            raise CorruptError("null counts of a B-tree: nulls come first", where=self.where)
        if not np.array_equal(_is_null(mins), counts > 0) or not np.array_equal(_is_null(maxs), counts == rows):
            raise CorruptError("bounds of pages and their null counts disagree", where=self.where)

    def _ascends(self) -> bool:
        return self.mins.is_ascending() and self.maxs.is_ascending() and self._interleaved()

    def _interleaved(self) -> bool:
        """Return whether min <= max for each page, and max <= min of the next one."""
        positions = np.arange(len(self.mins), dtype=np.int64) + self.straddles
        below, upto = self.maxs.places(self.mins, False), self.maxs.places(self.mins, True)
        return bool((below <= positions).all() and (upto >= positions).all())


def _columns(file: SegmentFile, type_: pa.DataType) -> tuple[pa.Array, pa.Array, Int64s, Int64s]:
    for name, expected_type in ((MIN, type_), (MAX, type_), (NULL_COUNT, pa.uint32()), (PAGE, pa.uint32())):
        file.column(name, expected_type)
    mins, maxs, null_counts, numbers = file.read([MIN, MAX, NULL_COUNT, PAGE])
    if null_counts.null_count or numbers.null_count:
        raise CorruptError("null counts and page numbers of a B-tree", where=file.path, expected="no nulls")
    return mins, maxs, *(array.to_numpy(zero_copy_only=False).astype(np.int64) for array in (null_counts, numbers))


def _is_null(values: pa.Array) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = values.is_null().to_numpy(zero_copy_only=False)
    return flags
