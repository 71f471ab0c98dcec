"""Caches the rows that pass the filters of repeated searches, and their positions in segments, for each version."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache, SizedCache
from lance_duck.rows.row_set import RowSet
from lance_duck.scan.filters import Filter, SqlFilter, TreeFilter
from lance_duck.scan.nearest.covered import CoveredRows
from lance_duck.scan.predicate.tree import Opaque
from lance_duck.scan.table_scan import TableScan

MOST_BYTES: Final = 64 << 20
"""Maximum size of the rows and positions cached per version, in bytes. This limits memory."""

_ASKED: Final = 1024
"""Maximum number of filters per version that are recorded as seen."""

Allowed = tuple[NDArray[np.bool_] | None, int]


class PassingRows:
    """The rows of a version that pass a filter.

    Attributes:
        rows: Addresses of the rows.

    Args:
        rows: Addresses of the rows.
    """

    def __init__(self, rows: RowSet) -> None:
        self.rows = rows
        self._allowed: dict[object, Allowed] = {}
        self._row_bytes = 1024 + 2 * len(rows)

    def allowed(self, covered: CoveredRows, owner: Hashable, fragments: frozenset[int]) -> Allowed:
        """Return a mask of the entries that may be found, and their number: see `CoveredRows.allowed`.

        Args:
            covered: The rows of a segment or partition.
            owner: Cache key of the segment or partition.
            fragments: Ids of the fragments that are searched.
        """
        key = owner, fragments
        allowed = self._allowed.get(key)
        if allowed is None:
            allowed = self._allowed[key] = covered.allowed(self.rows, fragments)
        return allowed

    @property
    def nbytes(self) -> int:
        """Memory size of the rows and masks, in bytes."""
        masks = sum(mask.nbytes for mask, _ in list(self._allowed.values()) if mask is not None)
        return self._row_bytes + masks


def passing_rows(table: TableScan, key: Hashable | None, find: Callable[[], RowSet]) -> PassingRows:
    """Return the rows of all fragments that pass a filter.

    Args:
        table: The table.
        key: The `cache_key` of the filter. None if the rows cannot be cached.
        find: Function that finds the rows.
    """
    if key is None:
        return PassingRows(find())
    cache: SizedCache[PassingRows] = table.option_cache.layout(
        "filtered", lambda: SizedCache(MOST_BYTES, _size, grows=True)
    )
    return cache.get(key, lambda: PassingRows(find()))


def cache_key(table: TableScan, filter_: Filter) -> Hashable | None:
    """Return the key by which `passing_rows` caches the rows of a filter.

    Returns:
        The key. None if the filter is not from the table's cache, or may select different rows each time.
    """
    return table.option_cache.key_of(filter_) if _means_the_same(filter_) else None


def comes_again(table: TableScan, filter_: Filter) -> bool:
    """Return whether a filter was seen before, and `passing_rows` caches its rows."""
    key = cache_key(table, filter_)
    return key is not None and was_asked(table, key)


def was_asked(table: TableScan, key: Hashable) -> bool:
    """Return whether the function was called with this key before, in this version."""
    keys: LruCache[object] = table.option_cache.layout("filters asked", lambda: LruCache(_ASKED))
    mark = object()
    return keys.get(key, lambda: mark) is not mark


def _size(rows: PassingRows) -> int:
    return rows.nbytes


def _means_the_same(filter_: Filter) -> bool:
    """Return whether a filter selects the same rows each time. Filters with DuckDB functions may be random."""
    if isinstance(filter_, SqlFilter):
        return filter_.expression.is_stable and filter_.parameters is None
    return isinstance(filter_, TreeFilter) and not any(isinstance(leaf, Opaque) for leaf in filter_.predicate.leaves())
