"""Merges B-trees range by range, so that only one range is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.index.btree.costs import MERGE_SAMPLE_PAGES
from lance_duck.index.btree.keys import BTreeKeys
from lance_duck.index.btree.order import order_of
from lance_duck.index.btree.search import BTreeIndex
from lance_duck.index.btree.write import TreeWriter, row_bytes, write_sorted
from lance_duck.index.kind import Follow, Rows


@dataclass(frozen=True)
class SourceTree:
    """A B-tree that is a source of a merge.

    Attributes:
        index: The open B-tree.
        follow: Maps rows to current ids or addresses, and returns a mask of the rows that are still entries. None if
            rows did not move.
    """

    index: BTreeIndex
    follow: Follow | None = None

    @cached_property
    def entry_bytes(self) -> int:
        """Memory for sorting an entry, in bytes. If values vary in width, a sample of pages gives an estimate."""
        lookup = self.index.lookup
        with suppress(ValueError):  # the type does not have a fixed width
            return row_bytes(lookup.num_rows * self.index.type.bit_width // 8, lookup.num_rows)
        pages = np.unique(np.linspace(lookup.first, lookup.num_pages - 1, MERGE_SAMPLE_PAGES).astype(np.int64))
        spans = [lookup.span(page) for page in pages.tolist() if lookup.first < lookup.num_pages]
        sizes = [self.index.entries.read(start, stop)[0].nbytes for _, start, stop in spans]
        return row_bytes(sum(sizes), sum(stop - start for _, start, stop in spans))

    def entries(self, type_: pa.DataType) -> Iterator[tuple[pa.Array, Rows]]:
        """Yield the values and rows of all entries, nulls first. Null values get the given type."""
        lookup = self.index.lookup
        for rows in self.nulls(max(1, lookup.nulls)):
            yield pa.nulls(len(rows), type_), rows
        yield self.values(lookup.nulls, lookup.num_rows)

    def nulls(self, count: int) -> Iterator[Rows]:
        """Yield the rows of the null entries, `count` at a time."""
        for start, stop in _steps(0, self.index.lookup.nulls, count):
            for rows in self.index.entries.ids([(start, stop)]):
                yield self._followed(rows, None)[0]

    def values(self, start: int, stop: int) -> tuple[pa.Array, Rows]:
        """Return the values and rows of a range of entries without nulls."""
        values, rows = self.index.entries.read(start, stop)
        if values.null_count:
            raise CorruptError("the values of the B-tree contain a null", where=self.index.lookup.where)
        rows, lives = self._followed(rows, values)
        return (values, rows) if lives is None else (values.filter(pa.array(lives)), rows)

    def _followed(self, rows: Rows, values: pa.Array | None) -> tuple[Rows, NDArray[np.bool_] | None]:
        if self.follow is None:
            return rows, None
        rows, lives = self.follow(rows)
        return (rows, None) if lives.all() else (rows[lives], lives)


def merge_sources(
    sources: Sequence[SourceTree],
    tree: TreeWriter,
    make: Callable[[pa.Array], BTreeKeys],
    limit: int,
    progress: Callable[[int], None],
) -> None:
    """Write the merged entries of B-trees with one value type.

    Args:
        sources: The B-trees.
        tree: Writer of the merged B-tree.
        make: Converts an array of values to B-tree keys.
        limit: Approximate memory limit, in bytes.
        progress: Called with the number of entries of each step.

    Raises:
        CorruptError: Entries are not in order.
    """
    max_entries = max(1, limit // max((source.entry_bytes for source in sources), default=1))
    for source in sources:
        for rows in source.nulls(max_entries):
            tree.write_nulls(rows)
            progress(len(rows))
    for spans, sorts in _ranges([source.index for source in sources], make, max_entries):
        if not sorts:
            _copy(sources, spans, tree, max_entries, progress)
            continue
        parts = [source.values(*span) for source, span in zip(sources, spans, strict=True) if span[0] < span[1]]
        if parts:
            values, rows = pa.concat_arrays([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
            del parts
            write_sorted(tree, values, rows, make)
        progress(sum(stop - start for start, stop in spans))


Spans = list[tuple[int, int]]


def _copy(
    sources: Sequence[SourceTree], spans: Spans, tree: TreeWriter, max_entries: int, progress: Callable[[int], None]
) -> None:
    """Copy entries that do not need sorting, source by source."""
    for source, span in zip(sources, spans, strict=True):
        for start, stop in _steps(*span, max_entries):
            tree.write(*source.values(start, stop))
            progress(stop - start)


def _ranges(
    indexes: Sequence[BTreeIndex], make: Callable[[pa.Array], BTreeKeys], max_entries: int
) -> Iterator[tuple[Spans, bool]]:
    """Split the non-null entries into ranges of about `max_entries`. Entries with the same value are not separated.

    Returns:
        The span of each range in each tree, and whether its entries must be sorted. They are already sorted if all
        have the same value or come from the same tree.
    """
    begins = [index.lookup.nulls for index in indexes]
    ends = [index.lookup.num_rows for index in indexes]
    if len(indexes) == 1:
        yield list(zip(begins, ends, strict=True)), False
        return
    at = begins
    keys = _splitters(indexes, make, max_entries)
    if keys is not None:
        lows, highs = ([index.places(keys, after).tolist() for index in indexes] for after in (False, True))
        for i in range(len(keys)):
            low, high = [each[i] for each in lows], [each[i] for each in highs]
            if sum(high) - sum(at) > 2 * max_entries:
                yield list(zip(at, low, strict=True)), True
                yield list(zip(low, high, strict=True)), False
            else:
                yield list(zip(at, high, strict=True)), True
            at = high
    yield list(zip(at, ends, strict=True)), True


def _splitters(
    indexes: Sequence[BTreeIndex], make: Callable[[pa.Array], BTreeKeys], max_entries: int
) -> BTreeKeys | None:
    """Choose some of the pages' maximum keys as ends of ranges: distinct and ascending. Returns None for one range."""
    lookups = [index.lookup for index in indexes]
    if sum(lookup.num_rows - lookup.nulls for lookup in lookups) <= max_entries:
        return None
    keys = make(pa.concat_arrays([lookup.ends[1] for lookup in lookups]))
    order = order_of(keys)
    rows = np.concatenate([np.diff(lookup.bounds[lookup.first :]) for lookup in lookups])[order]
    upto = np.cumsum(rows)
    # A range also includes a partial page of each tree.
    step = max(1, max_entries - sum(lookup.page_rows for lookup in lookups))
    positions = np.flatnonzero(np.diff(upto // step, prepend=0))
    splitters = keys.take(order[positions])
    first = splitters.places(splitters, False)
    return splitters.take(np.unique(first))


def _steps(start: int, stop: int, count: int) -> Iterator[tuple[int, int]]:
    return ((at, min(at + count, stop)) for at in range(start, stop, count))
