"""Scans for nearest rows: planned when a scanner is created, run when its result is read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import in_halves
from lance_duck.errors import UnsupportedError
from lance_duck.index.catalog import Segment
from lance_duck.index.registry import name_of
from lance_duck.index.search import ask
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.redact import shown
from lance_duck.scan import explain as scans
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.nearest.covered import covered_vectors
from lance_duck.scan.nearest.extremes import Extremes, extremes
from lance_duck.scan.nearest.lone import LoneSearch, NearRows, lone_search
from lance_duck.scan.nearest.lone_columns import LoneColumns
from lance_duck.scan.nearest.multivector import MultivectorSearch
from lance_duck.scan.nearest.options import DEFAULT_K, Nearest
from lance_duck.scan.nearest.queries import Queries, is_single_query
from lance_duck.scan.nearest.result import DISTANCE, ResultLayout, layout
from lance_duck.scan.nearest.search import PreparedSearch
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.sort import sort_table
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import watched
from lance_duck.wire.fragment import Fragment

_REFUSED: Final = ("include_deleted_rows", "blob_handling", "full_text_query")


class NearestScan:
    """A nearest-neighbour scan, planned before the queries are known. Safe to run from several threads.

    Args:
        table: The table.
        options: The options of the scan. The queries are ignored.
        fragment: The only fragment to search. None searches the fragments in the options.

    Raises:
        InvalidInputError: An option does not fit this table.
        UnsupportedError: An option is not supported with a search.
    """

    def __init__(self, table: TableScan, options: ScanOptions, fragment: Fragment | None = None) -> None:
        for name in _REFUSED:
            if getattr(options, name):
                raise UnsupportedError(f"{name} is not supported", where="nearest")
        assert options.nearest is not None
        schema = table.snapshot.schema
        self._table = table
        self._options = options
        rows = None if options.limit is None else max(1, options.limit + (options.offset or 0))
        self._nearest = Nearest.of(options.nearest, table, rows or DEFAULT_K)
        self._form = self._nearest.column.dim, self._nearest.column.query_dtype
        self._is_many = self._nearest.column.is_many
        self._layouts: dict[bool, ResultLayout] = {}
        self._search = self._prepared(fragment)
        for ordering in options.orderings:
            layout(schema, [ordering.column_name], is_batch=False)

    def schema(self, *, is_batch: bool) -> pa.Schema:
        """Return the schema of the result for one query, or for several."""
        return self._layout(is_batch).schema

    @property
    def is_exact(self) -> bool:
        """Whether the vectors of all rows that pass the filter are compared, without an index."""
        return not self._search.route.segments

    def extremes(self) -> Extremes:
        """Return the extremes of the vectors of the column: see `scan.nearest.extremes`."""
        return extremes(self._table, self._nearest.column)

    def queries(self, arguments: Mapping[str, Any]) -> Queries:
        """Return the queries in the arguments of a search."""
        return self._nearest.queries(arguments)

    def search(self, arguments: Mapping[str, Any]) -> pa.Table:
        """Search for the queries in the arguments of a search, and read the result."""
        q: Any = arguments.get("q")
        if not self.is_plain(q):
            return self.table(self.queries(arguments))
        table = self._table_of_one(q)
        return self._table_of(self.queries(arguments)) if table is None else table

    def is_plain(self, q: Any) -> bool:
        """Return whether a value is a single query in the form in which it is searched."""
        return not self._is_many and is_single_query(q, *self._form)

    def table(self, queries: Queries) -> pa.Table:
        """Search, and read the result."""
        table = None if queries.is_batch or queries.is_one else self._table_of_one(queries.vectors[0])
        return self._table_of(queries) if table is None else table

    def rows_of_one(self, query: NDArray[Any]) -> NearRows | None:
        """Return the rows of the result for one query by the fast way, or None if there is none.

        Args:
            query: A query for which `is_plain` is true.
        """
        rows = None if self._lone is None else self._lone.nearest(query)
        if rows is None or self._span is None:
            return rows
        return NearRows(rows.distances[self._span], rows.addresses[self._span])

    @property
    def nbytes(self) -> int:
        """Size in memory of what the fast way refers to, in bytes."""
        return 0 if self._lone is None else self._lone.nbytes

    def _table_of_one(self, query: NDArray[Any]) -> pa.Table | None:
        """Return the result for one query by the fast way, or None if there is none. See `rows_of_one`."""
        rows = self.rows_of_one(query)
        if rows is None:
            return None
        table = self._lone_columns.table(rows.addresses, rows.distances)
        return self._taken(self._layout(False), rows.neighbours()) if table is None else table

    @cached_property
    def _lone(self) -> LoneSearch | None:
        """The fast way, if the search has one."""
        return None if self._options.orderings else lone_search(self._search)

    @cached_property
    def _lone_columns(self) -> LoneColumns:
        has_row_ids = self._table.snapshot.has_stable_row_ids or self._table.snapshot.log is not None
        return LoneColumns(self._layout(False), DISTANCE, self._table.taker, has_row_ids=has_row_ids)

    @cached_property
    def _span(self) -> slice | None:
        """The range of the found rows to return, or None for all."""
        skip, most = self._options.offset or 0, self._options.limit
        return None if not skip and most is None else slice(skip, None if most is None else skip + most)

    def _table_of(self, queries: Queries) -> pa.Table:
        skip, most = self._options.offset or 0, self._options.limit
        neighbours, result = self._search.run(queries.vectors), self._layout(queries.is_batch)
        if not self._options.orderings:
            return self._taken(result, _cut(neighbours, skip, most))
        rows = self._taken(result, neighbours)
        keys = [self._keys(ordering.column_name, neighbours, queries.is_batch) for ordering in self._options.orderings]
        names = [str(i) for i in range(len(keys))]
        return sort_table(rows, pa.table(keys, names), self._options.orderings).slice(skip, most)

    def batches(self, queries: Queries) -> Iterator[pa.RecordBatch]:
        """Search, and yield the batches of the result. Columns are fetched batch by batch."""
        size = self._options.batch_size
        if size is None or self._options.orderings:
            yield from self.table(queries).to_batches(size)
            return
        rows = self.rows(queries)
        for start in range(0, len(rows), size):
            yield from self._batches(self._layout(queries.is_batch), _cut(rows, start, size))

    def count(self, queries: Queries) -> int:
        """Search, and count the rows of the result."""
        return len(self.rows(queries))

    def explain(self, queries: Queries, verbose: bool = False) -> str:
        """Describe the planned search."""
        return "\n".join(self._explained(queries, verbose)) + "\n"

    def analyze(self, queries: Queries, counting: bool = False) -> str:
        """Run the search, and describe its steps, reads and duration."""
        began = time.perf_counter()
        log: list[str] = []
        with watched() as reads:
            neighbours = self.rows(queries, log)
            rows = len(neighbours)
            if not counting:
                self._taken(self._layout(queries.is_batch), neighbours)
        took = (time.perf_counter() - began) * 1000
        lines = list(self._explained(queries, verbose=True))
        lines += [f"  {text}" for text in log]
        lines.append(f"  read: {reads.size} bytes in {reads.ranges} requests")
        lines.append(f"  took: {took:.1f} ms, {rows} rows")
        return "\n".join(lines) + "\n"

    def rows(self, queries: Queries, log: list[str] | None = None) -> Neighbours:
        """Return the rows of the result, ordered by query and distance. `order_by` does not apply."""
        return _cut(self._search.run(queries.vectors, log), self._options.offset or 0, self._options.limit)

    def _explained(self, queries: Queries, verbose: bool) -> Iterator[str]:
        columns = self.schema(is_batch=queries.is_batch).names
        return _explain_nearest(self._search, self._options, columns, len(queries), verbose=verbose)

    def _prepared(self, fragment: Fragment | None) -> PreparedSearch:
        options, table = self._options, self._table
        post = None
        if options.prefilter is False:
            post = table.option_cache.filter(table.snapshot.schema, options)
        filter_ = options.filter if options.prefilter is not False else None
        if filter_ is None and options.fragments is None and fragment is None:
            plan: ScanPlan = table.option_cache.layout("every row", lambda: table.plan(ScanOptions(columns=[])))
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
        prepared = MultivectorSearch if self._nearest.column.is_many else PreparedSearch
        return prepared(table, self._nearest, plan, post, bool(options.fast_search), workers)

    def _layout(self, is_batch: bool) -> ResultLayout:
        """Return the layout of the result for one query, or for several."""
        if is_batch not in self._layouts:
            names = self._options.columns
            key = (
                "nearest",
                None if names is None else tuple(names) if isinstance(names, list | tuple) else object(),
                is_batch,
                bool(self._options.with_row_id),
                bool(self._options.with_row_address),
                bool(self._options.disable_scoring_autoprojection),
            )
            self._layouts[is_batch] = self._table.option_cache.layout(key, lambda: self._new_layout(is_batch))
        return self._layouts[is_batch]

    def _new_layout(self, is_batch: bool) -> ResultLayout:
        options = self._options
        return layout(
            self._table.snapshot.schema,
            options.columns,
            is_batch=is_batch,
            with_row_id=bool(options.with_row_id),
            with_row_address=bool(options.with_row_address),
            with_distance=not options.disable_scoring_autoprojection,
        )

    def _taken(self, columns: ResultLayout, rows: Neighbours) -> pa.Table:
        return pa.Table.from_batches(self._batches(columns, rows), columns.schema)

    def _batches(self, columns: ResultLayout, rows: Neighbours) -> list[pa.RecordBatch]:
        """Return the rows of neighbours as one batch, or as several batches if one array cannot hold a column."""
        taker = self._table.taker
        return in_halves(lambda start, stop: [columns.batch(taker, _cut(rows, start, stop - start))], 0, len(rows))

    def _keys(self, name: str, rows: Neighbours, is_batch: bool) -> pa.ChunkedArray:
        columns = layout(self._table.snapshot.schema, [name], is_batch=is_batch, with_distance=False)
        return self._taken(columns, rows).column(name)


def _cut(rows: Neighbours, skip: int, most: int | None) -> Neighbours:
    if not skip and (most is None or most >= len(rows)):
        return rows
    span = slice(skip, None if most is None else skip + most)
    return Neighbours(rows.queries[span], rows.distances[span], rows.addresses[span])


def _explain_nearest(
    search: PreparedSearch, options: ScanOptions, columns: Sequence[str], num_queries: int, *, verbose: bool = False
) -> Iterator[str]:
    """Yield the lines that describe a search. A prefilter is described as the scan that comes first."""
    nearest, route, snapshot = search.nearest, search.route, search.table.snapshot
    many = f"{num_queries} queries" if num_queries > 1 else "1 query"
    yield f"LanceNearest: uri={shown(snapshot.uri)}, {scans.version_of(snapshot)}"
    yield from scans.of_log(snapshot)
    yield f"  columns: {', '.join(columns)}"
    yield f"  search: {nearest.k} nearest of {nearest.column.path} to {many}, metric {route.metric}"
    if nearest.lower is not None or nearest.upper is not None:
        low = "" if nearest.lower is None else f"{nearest.lower} <= "
        high = "" if nearest.upper is None else f" < {nearest.upper}"
        yield f"  distances: {low}_distance{high}"
    yield from _route(search)
    yield from scans.after_search(search.post, options)
    yield from scans.before_search(search.table, search.named, verbose=verbose)


def _route(search: PreparedSearch) -> Iterator[str]:
    route = search.route
    total = len(search.plan.fragment_ids)
    if route.segments and route.index is not None:
        names = ", ".join(str(segment.uuid)[:8] for segment, _ in route.segments[:8])
        more = f" and {len(route.segments) - 8} more" if len(route.segments) > 8 else ""
        first = route.segments[0][0]
        kind = name_of(first.kind.type_url, first.metadata.details) or first.kind.name
        yield f"  VectorIndexQuery: {route.index.name} ({kind}, segments {names}{more})"
        yield from _settings(search)
        if search.plan.filter is not None:
            yield "    filter: before the search; few rows that pass are compared one by one"
    yield from (f"  without an index: {reason}" for reason in route.reasons)
    num_open = len(route.open)
    what = "left out" if search.fast else "compared vector by vector"
    yield f"  fragments: {total - num_open} through the index, {num_open} {what}"


def _settings(search: PreparedSearch) -> Iterator[str]:
    nearest, pairs = search.nearest, search.route.segments
    if nearest.promise is None:
        probe = search.explicit_probe.probe
        most = "all" if probe.max_nprobes is None else probe.max_nprobes
        yield f"    partitions probed: {probe.nprobes}, at most {most}" + (f", ef {probe.ef}" if probe.ef else "")
        if nearest.column.is_many:
            yield ("    several vectors per row: rows are found by single vectors, then compared by all of them")
        if search.refine_factor is not None:
            yield f"    refine: {search.refine_factor} times as many rows, by stored vectors"
        return
    for segment, fragment_ids in pairs:
        name = f"segment {str(segment.uuid)[:8]}, " if len(pairs) > 1 else ""
        text = ask(search.table.snapshot, segment, partial(_reached, search, segment, fragment_ids))
        if text is not None:
            yield f"    settings: {name}{text}"
    if search.plan.filter is not None:
        yield "    settings with a filter: chosen by the share of the rows that pass it"


def _reached(search: PreparedSearch, segment: Segment, fragment_ids: frozenset[int], index: VectorIndex) -> str:
    """Describe the settings that reach the recall in a segment, without a filter."""
    rows = covered_vectors(search.table.snapshot, segment, index)
    return search.described_recall(segment, index, rows, rows.allowed(None, fragment_ids))
