"""Reads of one version of a table: scans, counts, rows by position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck import lazy
from lance_duck.arrow.decimals import MOST_DIGITS, sql_decimal, wide_decimal
from lance_duck.cache import LruCache
from lance_duck.errors import LanceDuckError, UnsupportedError
from lance_duck.scan.arrow.ipc_dataset import MOST_PIECES, piecewise_dataset
from lance_duck.scan.costs import (
    FRAGMENTS_AT_ONCE,
    LARGEST_REPEATED_TEXT,
    PAYS_BELOW,
    PAYS_BELOW_WHEN_WIDE,
    SAMPLE_SLICES,
    TASK_ROWS,
    WIDE_ROW,
)
from lance_duck.scan.filters import Filter, FilterLike, TreeFilter, all_filters, make_filter
from lance_duck.scan.options import OptionCache, ScanOptions, plan_scan
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.arrays import row_width
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.scan.projection import HIDDEN, ColumnsLike, Projection, Read, nested_projection, readable_schema, reads
from lance_duck.scan.read.execute import count_rows, has_rows, read_chosen, scan_batches
from lance_duck.scan.read.fragment_reader import ColumnCache, Columns, FragmentReader, open_at_once
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import run
from lance_duck.wire.column_path import join_path
from lance_duck.wire.fragment import Fragment

if TYPE_CHECKING:
    from lance_duck.index import catalog
    from lance_duck.scan import routing, sort
    from lance_duck.scan.read import take
else:
    catalog = lazy.modules(globals(), "lance_duck.index", "catalog")
    routing, sort = lazy.modules(globals(), "lance_duck.scan", "routing", "sort")
    take = lazy.modules(globals(), "lance_duck.scan.read", "take")


_CACHED_ESTIMATES: Final = 1024
"""Maximum number of DuckDB filters whose `filter_pays` result is cached per version. This limits memory."""

_CACHED_ROUTES: Final = 1024
"""Maximum number of filters whose index routes are cached per version. This limits memory."""


class HasTable(Protocol):
    """A handle to a dataset."""

    @property
    def table(self) -> TableScan:
        """Reader of the handle's current version."""


class TableScan:
    """Reads one version of a table. Safe to use from several threads.

    Args:
        snapshot: The version.
        restriction: Condition that the rows of all reads meet, or None for all rows.
    """

    def __init__(self, snapshot: Snapshot, restriction: Filter | None = None) -> None:
        self.snapshot = snapshot
        self.restriction = restriction
        self._columns = ColumnCache()
        self._option_cache = OptionCache()
        self._pays: LruCache[bool] = LruCache(_CACHED_ESTIMATES)
        self._shares: LruCache[float] = LruCache(_CACHED_ESTIMATES)
        self._repeats: dict[str, bool] = {}
        self._routes: LruCache[routing.Routes] = LruCache(_CACHED_ROUTES)
        self._last_projection: tuple[tuple[str, ...] | None, Projection] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return TableScan, (self.snapshot, self.restriction)

    @property
    def columns(self) -> ColumnCache:
        """Column readers that all reads share."""
        return self._columns

    @property
    def option_cache(self) -> OptionCache:
        """Cache of parsed scan options for this version."""
        return self._option_cache

    @cached_property
    def taker(self) -> take.Taker:
        """Reader of rows by position, address or row id, in the whole version."""
        return take.Taker(self.snapshot, self._columns)

    def projection(self, columns: ColumnsLike | None) -> Projection:
        """Return the columns of a take (see `nested_projection`). The last result is cached."""
        names = None if columns is None else tuple(columns) if isinstance(columns, list | tuple) else ()
        last = self._last_projection
        if names == () or last is None or last[0] != names:
            last = self._last_projection = names, nested_projection(self.snapshot.schema, columns)
        return last[1]

    def restricted(self, filter_: FilterLike) -> TableScan:
        """Return a reader of only the rows that pass a filter."""
        condition = make_filter(filter_, readable_schema(self.snapshot.schema))
        return TableScan(self.snapshot, all_filters(self.restriction, condition))

    def as_pieces(self) -> pads.Dataset:
        """Return the table as a dataset for pyarrow's C++ code: see `scan.arrow.ipc_dataset`."""
        count = len(self.snapshot.fragments)
        share = max(1, -(-count // MOST_PIECES))

        def read(piece: int) -> pa.Table:
            ids = self.snapshot.fragments.ids()
            options = ScanOptions(fragments=ids[piece * share : (piece + 1) * share])
            return self.reader(self.plan(options)).read_all()

        return piecewise_dataset(self.snapshot.schema.scan_arrow, -(-count // share), read)

    def plan(
        self,
        options: ScanOptions,
        fragment: Fragment | None = None,
        arrow_types: Mapping[str, pa.DataType] | None = None,
    ) -> ScanPlan:
        """Plan a scan, optionally of a single fragment. `arrow_types` overrides the Arrow types of columns, by name."""
        plan = plan_scan(
            self.snapshot,
            options,
            restriction=self.restriction,
            arrow_types=arrow_types,
            option_cache=self._option_cache,
        )
        return plan if fragment is None else replace(plan, fragments=(fragment,))

    def routed(self, plan: ScanPlan) -> ScanPlan:
        """Search the indexes, and return the plan with the rows that they choose."""
        if plan.filter is None or not plan.use_index or plan.include_deleted:
            return plan
        return routing.routed(self.snapshot, plan, self.routes(plan.filter))

    def routes(self, filter_: Filter) -> routing.Routes:
        """Return the index plans for a filter."""
        key = self._option_cache.key_of(filter_)
        if key is None:
            return routing.routes(filter_, catalog.catalog(self.snapshot))
        return self._routes.get(key, lambda: routing.routes(filter_, catalog.catalog(self.snapshot)))

    def index_estimate(self, filter_: FilterLike) -> int | None:
        """Return the maximum number of rows that a filtered scan reads, or None if no index helps.

        The number includes rows of fragments that no index covers. Computing it reads little data.
        """
        condition = make_filter(filter_, self._option_cache.readable(self.snapshot.schema))
        return None if condition is None else routing.rows_expected(self.snapshot, self.routes(condition))

    def rows_left(self, condition: Filter) -> int | None:
        """Return the maximum number of rows that a filtered scan reads, or None if no index helps.

        Unlike `index_estimate`, searches the indexes if necessary.
        """
        return routing.rows_left(self.snapshot, self.routes(condition))

    def reader(self, plan: ScanPlan, options: ScanOptions | None = None) -> pa.RecordBatchReader:
        """Stream the rows of a plan, sorted if the options request it."""
        workers = 1 if options is not None and not options.use_threads else None
        if options is None or not options.orderings:
            return self._stream(plan, workers)
        return self._sorted(plan, options, workers).to_reader(plan.batch_rows)

    def table(self, plan: ScanPlan, options: ScanOptions | None = None) -> pa.Table:
        """Read the rows of a plan into memory, sorted if the options request it."""
        if plan.filter is not None and (options is None or not options.order_by):
            plan = self.routed(plan)
            batches = read_chosen(self.snapshot, plan, self._columns)
            if batches is not None:
                return pa.Table.from_batches(batches, plan.projection.schema)
        return self.reader(plan, options).read_all()

    def count(self, plan: ScanPlan) -> int:
        """Return the number of rows of a plan."""
        rows = None if plan.filter is None else routing.counted(self.snapshot, plan, self.routes(plan.filter))
        return count_rows(self.snapshot, self.routed(plan), self._columns) if rows is None else plan.cut_count(rows)

    def has_no_nulls(self, name: str) -> bool:
        """Return whether metadata proves that a top-level column is free of nulls, without reading values.

        Raises:
            LanceDuckError: A file is missing or corrupt.
        """
        return all(
            FragmentReader(self.snapshot, fragment, self._columns).has_no_nulls(read)
            for read in reads(self.snapshot.schema, [(name,)])
            for fragment in self.snapshot.fragments
        )

    def has_no_null_items(self, name: str) -> bool:
        """Return whether metadata proves that a vector column is free of null items, without reading values.

        Raises:
            LanceDuckError: A file is missing or corrupt.
        """
        columns = reads(self.snapshot.schema, [(name,)])
        fragments = [FragmentReader(self.snapshot, one, self._columns) for one in self.snapshot.fragments]
        open_at_once(fragments, columns)
        return all(fragment.has_no_null_items(column) for column in columns for fragment in fragments)

    def extremes(self, name: str) -> tuple[pa.Scalar, pa.Scalar] | None:
        """Return the minimum and maximum of a top-level column, or None if no index stores them."""
        if self.restriction is not None:
            return None

        def read(fragments: Iterable[int]) -> Iterator[pa.Array]:
            batches = self.reader(self.plan(ScanOptions(columns=[name], fragments=fragments)))
            return (batch.column(name) for batch in batches)

        type_ = self.snapshot.schema.scan_arrow.field(name).type
        make = partial(routing.extremes, self.snapshot, join_path([name]), type_, read)
        return self.snapshot.derived(("extremes", name), make)

    def has_rows(self, plan: ScanPlan) -> bool:
        """Return whether a plan returns any rows."""
        return has_rows(self.snapshot, self.routed(plan), self._columns)

    def filter_pays(self, predicate: Predicate) -> bool:
        """Return whether the scan, and not DuckDB, should apply a filter: see the function `filter_pays`."""
        return self._pays.get(str(predicate), lambda: self._filter_pays(predicate))

    def share_passing(self, condition: Filter) -> float:
        """Estimate the share of rows that pass a filter, 0 to 1. Recent estimates are cached.

        Raises:
            LanceDuckError: A file is missing or corrupt.
        """
        return self._shares.get(str(condition), lambda: estimate_selectivity(self.snapshot, self._columns, condition))

    def sample(self, names: Sequence[str]) -> pa.Table:
        """Return `SAMPLE_SLICES` slices of columns, spread over the table, including deleted rows.

        Raises:
            LanceDuckError: A file is missing or corrupt.
        """
        columns = reads(self.snapshot.schema, [(name,) for name in names])
        schema = pa.schema([self.snapshot.schema.scan_arrow.field(name) for name in names])
        samples = _samples(self.snapshot, self._columns, columns)
        batches = [pa.record_batch([arrays[name] for name in names], schema=schema) for _, arrays in samples]
        return pa.Table.from_batches(batches, schema)

    def predicate_reader(
        self, schema: pa.Schema, predicate: Predicate | None, *, any_form: bool = False
    ) -> pa.RecordBatchReader:
        """Stream the rows for which a predicate is true, with columns in the given Arrow types.

        Args:
            schema: Columns of the result, in their order and types.
            predicate: Condition on the table's columns. None reads all rows.
            any_form: Whether strings may be returned as dictionaries.
        """
        forms = {field.name: field.type for field in schema}
        self._refuse_wide_decimals(forms)
        if any_form:
            forms |= self.dictionaries(schema)
        return self.reader(self._typed_plan(forms, None if predicate is None else TreeFilter(predicate)))

    def chosen_rows(self, schema: pa.Schema, condition: Filter, most: int | None) -> pa.Table | None:
        """Return the rows that pass a filter, with columns in the given Arrow types.

        Args:
            schema: Columns of the result, in their order and types.
            condition: Condition on the table's columns.
            most: Maximum number of rows that indexes may choose, or None for no limit.

        Returns:
            The rows, or None if indexes choose more than `most` rows or leave a fragment to scan.
        """
        plan = self.routed(self._typed_plan({field.name: field.type for field in schema}, condition))
        if most is not None:
            rows = routing.rows_chosen(plan)
            if rows is None or rows > most:
                return None
        return self.table(plan)

    def _typed_plan(self, forms: Mapping[str, pa.DataType], condition: Filter | None) -> ScanPlan:
        """Plan a scan with columns in the given Arrow types."""
        self._refuse_wide_decimals([*forms, *(path[0] for path in (condition.paths() if condition else ()))])
        options = ScanOptions(columns=list(forms), blob_handling="all_binary")
        restriction = all_filters(self.restriction, condition)
        forms = {**self._narrow_decimals(condition), **forms}
        plan = plan_scan(
            self.snapshot, options, restriction=restriction, arrow_types=forms, option_cache=self._option_cache
        )
        return replace(plan, crosses_fragments=True)

    def _narrow_decimals(self, condition: Filter | None) -> Mapping[str, pa.DataType]:
        """Return DuckDB's types of the decimal columns that a predicate reads. They are compared as integers."""
        if not isinstance(condition, TreeFilter):
            return {}
        fields = [
            self.snapshot.schema.scan_arrow.field(name)
            for name in condition.predicate.columns()
            if name in self.snapshot.schema.names
        ]
        return {field.name: sql_decimal(field.type) for field in fields if pa.types.is_decimal(field.type)}

    def _refuse_wide_decimals(self, names: Iterable[str]) -> None:
        """Raise UnsupportedError if a column has decimals that are too wide for DuckDB."""
        for name in names:
            wide = self._wide_decimals.get(name)
            if wide is not None:
                raise UnsupportedError(
                    f"SQL cannot represent {wide}",
                    where=f"column {name!r}",
                    expected=f"at most {MOST_DIGITS} digits",
                    remedy=f'leave out the column with SELECT * EXCLUDE ("{name}"), or cast it with ALTER TABLE',
                )

    @cached_property
    def _wide_decimals(self) -> Mapping[str, pa.DataType]:
        """Decimal types that are too wide for DuckDB, by column name."""
        found = ((field.name, wide_decimal(field.type)) for field in self.snapshot.schema.scan_arrow)
        return {name: type_ for name, type_ in found if type_ is not None}

    def _filter_pays(self, predicate: Predicate) -> bool:
        condition = TreeFilter(predicate)
        expected = routing.rows_expected(self.snapshot, self.routes(condition))
        return filter_pays(self.snapshot, self._columns, condition, expected)

    def _stream(self, plan: ScanPlan, workers: int | None) -> pa.RecordBatchReader:
        """Return a lazy reader. Before its first batch is requested, no data is read and no index is searched."""

        def batches() -> Iterator[pa.RecordBatch]:
            yield from scan_batches(self.snapshot, self.routed(plan), self._columns, workers)

        return pa.RecordBatchReader.from_batches(plan.projection.schema, batches())

    def dictionaries(self, schema: pa.Schema) -> Mapping[str, pa.DataType]:
        """Return dictionary types, by column name, for the string columns of a schema whose values repeat."""
        strings = [(field.name,) for field in schema if pa.types.is_string(field.type)]
        forms = {}
        for read in reads(self.snapshot.schema, strings):
            if read.name not in self._repeats:
                self._repeats[read.name] = repeats(self.snapshot, self._columns, read)
            if self._repeats[read.name]:
                forms[read.name] = pa.dictionary(pa.int32(), pa.string())
        return forms

    def _sorted(self, plan: ScanPlan, options: ScanOptions, workers: int | None) -> pa.Table:
        """Sort all rows, then apply offset and limit."""
        whole = self.routed(replace(plan, limit=None, offset=0))
        keys = replace(options, columns=[o.column_name for o in options.orderings], with_row_id=False)
        keys = replace(keys, with_row_address=False, include_deleted_rows=False)
        sort_plan = replace(whole, projection=self.plan(keys).projection)
        table = self._stream(whole, workers).read_all()
        columns = self._stream(sort_plan, workers).read_all()
        ordered = sort.sort_table(table, columns, options.orderings)
        return ordered.slice(plan.offset, plan.limit)


def repeats(snapshot: Snapshot, columns: ColumnCache, read: Read) -> bool:
    """Return whether to read a string column as dictionary(int32, string), which DuckDB groups and compares faster.

    This is the case if all its pages are dictionary-encoded and its values are short. Tables of many fragments are not
    checked.

    Args:
        snapshot: The version of the table.
        columns: Cache of column readers.
        read: A top-level column of strings.
    """
    fragments = snapshot.fragments
    if not len(fragments) or len(fragments) > FRAGMENTS_AT_ONCE:
        return False
    readers = [FragmentReader(snapshot, fragment, columns) for fragment in fragments]
    try:
        return all(
            reader.is_dictionary(read) and reader.stored_bytes(read) <= LARGEST_REPEATED_TEXT * reader.num_rows
            for reader in readers
        )
    except LanceDuckError:
        return False  # the scan will raise the error


def filter_pays(snapshot: Snapshot, columns: ColumnCache, condition: Filter, expected: int | None = None) -> bool:
    """Return whether the scan should apply a filter instead of leaving it to DuckDB.

    If the scan filters, it does not read the other columns of rows that do not pass. However, it copies the rows that
    pass, which DuckDB can avoid. DuckDB also plans its joins as if every row passed a filter that the scan accepts. The
    scan therefore filters if very few rows pass, if rows are wide, or if the table is in an object store.

    Args:
        snapshot: The version of the table.
        columns: Cache of column readers.
        condition: The filter.
        expected: Maximum number of rows that a scan with indexes reads. None if no index helps.
    """
    if local_path(snapshot.uri) is None or any(path[0] in HIDDEN for path in condition.paths()):
        return True
    wide = sum(row_width(field.type) for field in snapshot.schema.scan_arrow) >= WIDE_ROW
    most = PAYS_BELOW_WHEN_WIDE if wide else PAYS_BELOW
    if expected is not None and expected <= most * snapshot.count_rows():
        return True
    try:
        selectivity = estimate_selectivity(snapshot, columns, condition)
    except LanceDuckError:
        return True  # the scan will raise the error
    return selectivity <= most


def estimate_selectivity(snapshot: Snapshot, columns: ColumnCache, condition: Filter) -> float:
    """Estimate the share of rows that pass a filter, 0 to 1, from slices spread over the table."""
    num_rows = num_passing = 0
    for count, arrays in _samples(snapshot, columns, reads(snapshot.schema, condition.paths())):
        num_rows += count
        num_passing += condition.mask(arrays, count).true_count
    return num_passing / num_rows if num_rows else 0.0


def _samples(snapshot: Snapshot, columns: ColumnCache, wanted: Sequence[Read]) -> Iterator[tuple[int, Columns]]:
    """Yield the row count and columns of slices spread over the table, including deleted rows."""
    fragments = snapshot.fragments
    spots = {
        _spot(snapshot, (i + 0.5) * len(fragments) / SAMPLE_SLICES)
        for i in range(SAMPLE_SLICES if len(fragments) else 0)
    }
    for index, start, stop in sorted(spots):
        if start < stop:
            reader = FragmentReader(snapshot, fragments[index], columns)
            yield stop - start, run(reader.read(wanted, slice(start, stop)))


def _spot(snapshot: Snapshot, place: float) -> tuple[int, int, int]:
    """Return the fragment index, start and stop of a slice. `place` is its position in the table, in fragments."""
    index = int(place)
    count = snapshot.physical_rows(snapshot.fragments[index])
    start = max(0, min(int((place % 1) * count) - TASK_ROWS // 2, count - TASK_ROWS))
    return index, start, min(start + TASK_ROWS, count)
