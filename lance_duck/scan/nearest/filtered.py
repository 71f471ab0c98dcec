"""Rows of filters that searches come with again and again, and their positions in segments: found once a version."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache, SizedCache
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter, SqlFilter, TreeFilter
from lance_duck.scan.nearest.covered import Covered
from lance_duck.scan.predicate.tree import Opaque
from lance_duck.scan.table_scan import TableScan

MOST_BYTES: Final = 64 << 20

_ASKED: Final = 1024
"""Filters of which a version remembers that they were asked."""

Allowed = tuple[NDArray[np.bool_] | None, int]


class Filtered:
    """The rows of a version that pass a filter.

    Attributes:
        rows: By address.

    Args:
        rows: By address.
    """

    def __init__(self, rows: RowSet) -> None:
        self.rows = rows
        self._allowed: dict[object, Allowed] = {}
        self._row_bytes = 1024 + 2 * len(rows)

    def allowed(self, covered: Covered, owner: Hashable, fragments: frozenset[int]) -> Allowed:
        """Return which positions may be found, and how many: see `Covered.allowed`.

        Args:
            covered: The rows of a segment, or of a part of one.
            owner: Names the segment, or the part.
            fragments: Those that are searched.
        """
        key = owner, fragments
        allowed = self._allowed.get(key)
        if allowed is None:
            allowed = self._allowed[key] = covered.allowed(self.rows, fragments)
        return allowed

    @property
    def nbytes(self) -> int:
        """Bytes that it holds in memory."""
        masks = sum(mask.nbytes for mask, _ in list(self._allowed.values()) if mask is not None)
        return self._row_bytes + masks


def filtered(table: TableScan, filter_: Filter, find: Callable[[], RowSet]) -> Filtered:
    """Return the rows of all fragments that pass a filter; found once where the filter is one that is asked again.

    Args:
        table: Where.
        filter_: One object each time where it is asked again.
        find: Finds the rows.
    """
    key = table.known.key_of(filter_)
    if key is None or not _means_the_same(filter_):
        return Filtered(find())
    cache: SizedCache[Filtered] = table.known.layout("filtered", lambda: SizedCache(MOST_BYTES, _size, grows=True))
    return cache.get(key, lambda: Filtered(find()))


def comes_again(table: TableScan, filter_: Filter) -> bool:
    """Return whether a filter was asked about before, and `filtered` remembers its rows, or would."""
    key = table.known.key_of(filter_)
    if key is None or not _means_the_same(filter_):
        return False
    filters: LruCache[object] = table.known.layout("filters asked", lambda: LruCache(_ASKED))
    mark = object()
    return filters.get(key, lambda: mark) is not mark


def _size(rows: Filtered) -> int:
    return rows.nbytes


def _means_the_same(filter_: Filter) -> bool:
    """Return whether a filter surely is true for the same rows each time: DuckDB's functions may be random."""
    if isinstance(filter_, SqlFilter):
        return filter_.expression.is_stable and filter_.parameters is None
    return isinstance(filter_, TreeFilter) and not any(isinstance(leaf, Opaque) for leaf in filter_.predicate.leaves())
