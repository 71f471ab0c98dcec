"""Plans of scans, decided before any data is read.

A plan contains the columns that the filter reads, and the columns to fetch for the rows that pass. Its work is split
into morsels: row ranges of one fragment, each read by one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from lance_duck import lazy
from lance_duck.scan.costs import (
    BURST,
    GROWTH,
    MORSEL_BYTES,
    MORSEL_ROWS,
    MOST_MORSEL_BYTES,
    SMALL_BATCH_BYTES,
    SMALL_BATCH_ROWS,
)
from lance_duck.scan.filters import Filter
from lance_duck.scan.predicate.tree import Path
from lance_duck.scan.projection import HIDDEN, Projection, Read, reads
from lance_duck.wire.fragment import Fragment, Fragments
from lance_duck.wire.schema import Schema

if TYPE_CHECKING:
    from lance_duck.scan.indexes import selection
else:
    selection = lazy.modules(globals(), "lance_duck.scan.indexes", "selection")

_T = TypeVar("_T")


@dataclass(frozen=True)
class ScanPlan:
    """The plan of a scan of a snapshot.

    Attributes:
        schema: Columns of the table.
        fragments: Fragments to scan, in order.
        projection: Columns of the result.
        filter: Condition that returned rows meet. None returns all rows.
        offset: Number of rows to skip, after the filter.
        limit: Maximum number of rows to return. None returns all.
        batch_rows: Maximum number of rows per batch. None derives it from the row width.
        batch_bytes: Approximate batch size, in bytes. None means `costs.MORSEL_BYTES`.
        strict_batches: Whether all batches except the last have exactly `batch_rows` rows. They may cross fragments.
        crosses_fragments: Whether small batches of several fragments are joined, as they always are with a filter.
        include_deleted: Whether deleted rows are also returned, with null as their `_rowid`.
        arrow_types: Arrow types for top-level columns, by name. The filter also reads the columns in these types.
        use_index: Whether indexes may be searched.
        choices: The rows that indexes chose, or None if all rows are read.
    """

    schema: Schema
    fragments: Sequence[Fragment]
    projection: Projection
    filter: Filter | None = None
    offset: int = 0
    limit: int | None = None
    batch_rows: int | None = None
    batch_bytes: int | None = None
    strict_batches: bool = False
    crosses_fragments: bool = False
    include_deleted: bool = False
    arrow_types: tuple[tuple[str, pa.DataType], ...] = ()
    use_index: bool = True
    choices: selection.Choices | None = None

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of the fragments."""
        return self.fragments.id_set if isinstance(self.fragments, Fragments) else frozenset(self.ids)

    @cached_property
    def ids(self) -> Sequence[int]:
        """Ids of the fragments, in order."""
        return self.fragments.ids() if isinstance(self.fragments, Fragments) else [f.id for f in self.fragments]

    @cached_property
    def place_of(self) -> Mapping[int, int] | None:
        """Positions of the fragments in the plan, by fragment id. None if a fragment is scanned twice."""
        if isinstance(self.fragments, Fragments):
            places = self.fragments.places
        else:
            places = {fragment_id: place for place, fragment_id in enumerate(self.ids)}
        return places if len(places) == len(self.fragments) else None

    def cut_count(self, rows: int) -> int:
        """Return how many of `rows` rows remain after offset and limit."""
        rows = max(0, rows - self.offset)
        return rows if self.limit is None else min(rows, self.limit)

    def with_filter(self, filter_: Filter | None) -> ScanPlan:
        """Return the plan with a new filter. Returns this object if the filter is the same."""
        if filter_ is self.filter:
            return self
        plan = next((plan for plan in self._variants if plan.filter is filter_), None)
        if plan is None:
            plan = replace(self, filter=filter_)
            self._variants.append(plan)
        return plan

    @cached_property
    def _variants(self) -> list[ScanPlan]:
        return []

    @cached_property
    def first_reads(self) -> tuple[Read, ...]:
        """Columns to read for the filter."""
        return self._reads(self._filter_paths)

    @cached_property
    def later_reads(self) -> tuple[Read, ...]:
        """Columns of the result that the filter does not read, or of which it reads only some struct fields."""
        return self._derived("later", lambda: self._not_read(self.first_reads))

    @cached_property
    def carried(self) -> tuple[str, ...]:
        """Names of the result columns that are already read completely for the filter."""
        later = {read.key for read in self.later_reads}
        keys = {read.key for read in self._reads(self.projection.paths)} - later
        return tuple(read.name for read in self.first_reads if read.key in keys)

    @cached_property
    def hidden(self) -> tuple[str, ...]:
        """Hidden columns of the result."""
        return self._hidden(self.projection.paths)

    @cached_property
    def hidden_in_filter(self) -> tuple[str, ...]:
        """Hidden columns that the filter needs."""
        return self._hidden(self._filter_paths)

    @cached_property
    def width(self) -> int:
        """Estimated row width, in bytes, derived from the types."""
        reads = self._derived("width", lambda: sum(read.width for read in (*self.first_reads, *self.later_reads)))
        return max(1, reads + 8 * len(self.hidden))

    @cached_property
    def filter_width(self) -> int | None:
        """Estimated row width of the filter's columns, in bytes. None without a filter."""
        if self.filter is None:
            return None
        return sum(read.width for read in self.first_reads) + 8 * len(self.hidden_in_filter)

    @cached_property
    def _filter_paths(self) -> tuple[Path, ...]:
        return self.filter.paths() if self.filter is not None else ()

    def _reads(self, paths: tuple[Path, ...]) -> tuple[Read, ...]:
        if not paths:
            return ()
        return self._derived(paths, lambda: reads(self.schema, paths, dict(self.arrow_types)))

    def _not_read(self, done: tuple[Read, ...]) -> tuple[Read, ...]:
        keys = {read.key for read in done}
        return tuple(read for read in self._reads(self.projection.paths) if read.key not in keys)

    def _derived(self, what: object, make: Callable[[], _T]) -> _T:
        """Return a value that depends only on the projection, the filter's paths and the column types, from a cache."""
        key = (what, self._filter_paths, self.arrow_types)
        schema, value = self.projection.derived.get(key, lambda: (self.schema, make()))
        result: _T = value if schema is self.schema else make()
        return result

    def _hidden(self, paths: Sequence[Path]) -> tuple[str, ...]:
        return tuple(path[0] for path in paths if path[0] in HIDDEN and path[0] not in self.schema.names)


@dataclass(frozen=True)
class Extent:
    """A range of rows of a fragment to scan.

    Attributes:
        index: Position of the fragment in the plan.
        start: Physical offset of the first row.
        stop: One more than the physical offset of the last row.
        row_offset: Number of live rows before the fragment in the table.
    """

    index: int
    start: int
    stop: int
    row_offset: int = 0


Morsel = Extent


class Sizer:
    """Computes morsel sizes, in rows. The first morsels are small, so that the first batch arrives early.

    Args:
        width: Estimated size of a result row, in bytes. Batches passed to `observe` correct the estimate.
        rows: Batch size in rows, if the caller set it. Morsels are multiples of it, unless they would be too large.
        bytes_: Batch size, in bytes, if the caller set it.
        filtered: Row width of the filter's columns, in bytes, or None without a filter.
        most: Maximum number of rows per morsel.
        is_full: Whether the first morsel already has the full size.
    """

    def __init__(
        self,
        width: int,
        rows: int | None = None,
        bytes_: int | None = None,
        filtered: int | None = None,
        *,
        most: int = MORSEL_ROWS,
        is_full: bool = False,
    ) -> None:
        self._most = max(1, width)
        self._filtered = filtered or 0
        self._width = max(1, width if filtered is None else filtered)
        self._unit = rows or 1
        self._bytes = bytes_ or MORSEL_BYTES
        self._most_rows = most
        self._next = most if is_full else max(1, min(SMALL_BATCH_ROWS, SMALL_BATCH_BYTES // self._most))
        self._observed: tuple[int, Sequence[pa.RecordBatch]] | None = None

    def take(self) -> int:
        """Return the row count of the next morsel."""
        if self._observed is not None:
            self._learn(*self._observed)
            self._observed = None
        cap = max(1, min(self._most_rows, self._bytes // self._width, BURST * self._bytes // self._most))
        rows = min(self._next, cap)
        self._next = min(self._next * GROWTH, self._most_rows)
        return min(max(1, rows // self._unit) * self._unit, max(1, MOST_MORSEL_BYTES // self._most))

    def observe(self, rows: int, batches: Sequence[pa.RecordBatch]) -> None:
        """Record the batches read from a morsel of `rows` rows. They determine the size of the next morsel."""
        self._observed = rows, batches

    def _learn(self, rows: int, batches: Sequence[pa.RecordBatch]) -> None:
        remaining = sum(batch.num_rows for batch in batches)
        size = sum(batch.nbytes for batch in batches)  # 7 µs per batch
        if remaining:
            self._most = max(1, size // remaining)
        if rows:
            self._width = max(1, self._filtered + size // rows)


def morsels_of(extents: Iterator[Extent], sizer: Sizer) -> Iterator[Morsel]:
    """Cut extents into morsels, lazily. Their sizes adapt to the rows that were read before."""
    for extent in extents:
        start = extent.start
        while start < extent.stop:
            rows = sizer.take()
            # A short remainder is added to the previous morsel.
            stop = extent.stop if extent.stop - start <= rows + rows // 4 else start + rows
            yield Morsel(extent.index, start, stop, extent.row_offset)
            start = stop
