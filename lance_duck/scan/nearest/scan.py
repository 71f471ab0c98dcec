"""A scan that is a search: decided when a scanner is made, done when its result is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.errors import UnsupportedError
from lance_duck.scan.nearest.best import Found
from lance_duck.scan.nearest.explain import explain
from lance_duck.scan.nearest.extremes import Extremes, extremes
from lance_duck.scan.nearest.options import DEFAULT_K, Nearest
from lance_duck.scan.nearest.queries import Queries
from lance_duck.scan.nearest.result import ResultLayout, layout
from lance_duck.scan.nearest.search import Search
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.sort import sort_table
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import watched
from lance_duck.wire.fragment import Fragment

_REFUSED: Final = ("include_deleted_rows", "blob_handling")


class NearestScan:
    """Rows nearest to queries.

    Args:
        table: Where.
        options: What the caller asked for.
        fragment: The only fragment to search, None for those of the options.

    Raises:
        InvalidInputError: What was asked makes no sense for this table.
        UnsupportedError: It is known, and not supported with a search.
    """

    def __init__(self, table: TableScan, options: ScanOptions, fragment: Fragment | None = None) -> None:
        for name in _REFUSED:
            if getattr(options, name):
                raise UnsupportedError(f"{name} is not supported", where="nearest")
        assert options.nearest is not None
        schema = table.snapshot.schema
        self._table = table
        self._options = options
        asked = None if options.limit is None else max(1, options.limit + (options.offset or 0))
        self._nearest = Nearest.of(options.nearest, schema, asked or DEFAULT_K)
        self._layout = self._columns(options)
        self._search = self._decided(fragment)
        for ordering in options.orderings:
            layout(schema, [ordering.column_name], is_batch=self._nearest.is_batch)

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._layout.schema

    @property
    def is_exact(self) -> bool:
        """Whether no index is asked: all vectors that a filter leaves are compared."""
        return not self._search.route.segments

    def extremes(self) -> Extremes:
        """Return what vectors the column has: see `scan.nearest.extremes`."""
        return extremes(self._table, self._nearest.column)

    @property
    def is_batch(self) -> bool:
        """Whether several queries were meant."""
        return self._nearest.is_batch

    @property
    def queries(self) -> Queries:
        """What is searched for, (n, dim)."""
        return self._nearest.queries

    @property
    def query_form(self) -> tuple[int, np.dtype[Any]]:
        """Length and dtype of a query."""
        return self._nearest.column.dim, self.queries.dtype

    def asking(self, queries: Queries) -> NearestScan:
        """Return the same for other queries, (n, dim) as `query_vectors` gives them for `query_form`."""
        other = object.__new__(NearestScan)
        other.__dict__.update(self.__dict__)
        other._nearest = self._nearest.asking(queries)
        other._search = self._search.asking(other._nearest)
        return other

    def table(self) -> pa.Table:
        """Search, and read the result."""
        skip, most = self._options.offset or 0, self._options.limit
        found = self._search.run()
        if not self._options.orderings:
            return self._taken(self._layout, _cut(found, skip, most))
        rows = self._taken(self._layout, found)
        keys = [self._keys(ordering.column_name, found) for ordering in self._options.orderings]
        names = [str(i) for i in range(len(keys))]
        return sort_table(rows, pa.table(keys, names), self._options.orderings).slice(skip, most)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Search, and yield the batches of the result; columns are fetched for a batch at a time."""
        size = self._options.batch_size
        if size is None or self._options.orderings:
            yield from self.table().to_batches(size)
            return
        found = _cut(self._search.run(), self._options.offset or 0, self._options.limit)
        for start in range(0, len(found), size):
            yield self._layout.batch(self._table.taker, _cut(found, start, size))

    def count(self) -> int:
        """Search, and count the rows of the result."""
        return len(_cut(self._search.run(), self._options.offset or 0, self._options.limit))

    def explain(self, verbose: bool = False) -> str:
        """Return what the search will do."""
        return "\n".join(explain(self._search, self._options, self.schema.names, verbose=verbose)) + "\n"

    def analyze(self, counting: bool = False) -> str:
        """Search, and say what it took."""
        began = time.perf_counter()
        with watched() as seen:
            rows = self.count() if counting else self.table().num_rows
        took = (time.perf_counter() - began) * 1000
        lines = list(explain(self._search, self._options, self.schema.names, verbose=True))
        lines += [f"  {text}" for text in self._search.log]
        lines.append(f"  read: {seen.size} bytes in {seen.ranges} requests")
        lines.append(f"  took: {took:.1f} ms, {rows} rows")
        return "\n".join(lines) + "\n"

    def _decided(self, fragment: Fragment | None) -> Search:
        options, table = self._options, self._table
        post = None
        if options.prefilter is False:
            post = table.known.filter(table.snapshot.schema, options)
        filter_ = options.filter if options.prefilter is not False else None
        if filter_ is None and options.fragments is None and fragment is None:
            plan: ScanPlan = table.known.layout("every row", lambda: table.plan(ScanOptions(columns=[])))
        else:
            parameters = options.parameters if filter_ is not None else None
            inner = ScanOptions(
                columns=[],
                filter=filter_,
                parameters=parameters,
                fragments=options.fragments,
                use_scalar_index=options.use_scalar_index,
            )
            plan = table.plan(inner, fragment)
        workers = None if options.use_threads else 1
        return Search(table, self._nearest, plan, post, bool(options.fast_search), workers)

    def _columns(self, options: ScanOptions) -> ResultLayout:
        names = options.columns
        key = (
            "nearest",
            None if names is None else tuple(names) if isinstance(names, list | tuple) else object(),
            self._nearest.is_batch,
            bool(options.with_row_id),
            bool(options.with_row_address),
            bool(options.disable_scoring_autoprojection),
        )
        return self._table.known.layout(key, lambda: self._layout_of(options))

    def _layout_of(self, options: ScanOptions) -> ResultLayout:
        return layout(
            self._table.snapshot.schema,
            options.columns,
            is_batch=self._nearest.is_batch,
            with_row_id=bool(options.with_row_id),
            with_row_address=bool(options.with_row_address),
            with_distance=not options.disable_scoring_autoprojection,
        )

    def _taken(self, columns: ResultLayout, found: Found) -> pa.Table:
        return pa.Table.from_batches([columns.batch(self._table.taker, found)], columns.schema)

    def _keys(self, name: str, found: Found) -> pa.ChunkedArray:
        columns = layout(self._table.snapshot.schema, [name], is_batch=self._nearest.is_batch, with_distance=False)
        return self._taken(columns, found).column(name)


def _cut(found: Found, skip: int, most: int | None) -> Found:
    if not skip and (most is None or most >= len(found)):
        return found
    chosen = slice(skip, None if most is None else skip + most)
    return Found(found.queries[chosen], found.distances[chosen], found.addresses[chosen])
