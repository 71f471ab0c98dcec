"""A scan that is a full-text search: decided when a scanner is made, done when its result is asked for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from typing import Final

import pyarrow as pa

from lance_duck.errors import UnsupportedError
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.sort import sort_table
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.explain import explain
from lance_duck.scan.text.ranking import Ranking
from lance_duck.scan.text.request import full_text_query
from lance_duck.scan.text.result import SCORE, ScoreLayout, score_layout
from lance_duck.scan.text.search import TextSearch
from lance_duck.store.request import watched
from lance_duck.wire.fragment import Fragment

_REFUSED: Final = ("include_deleted_rows", "blob_handling")


class TextScan:
    """A scan for the rows that match a full-text query. Safe to run from several threads.

    Args:
        table: The table.
        options: What the caller asked for.
        fragment: The only fragment to search, None for those of the options.

    Raises:
        InvalidInputError: What was asked makes no sense for this table.
        UnsupportedError: What was asked is known, and not supported with a search.
    """

    def __init__(self, table: TableScan, options: ScanOptions, fragment: Fragment | None = None) -> None:
        for name in _REFUSED:
            if getattr(options, name):
                raise UnsupportedError(f"{name} is not supported", where="full_text_query")
        if options.nearest is not None:
            raise UnsupportedError(
                "full_text_query together with nearest",
                where="scan",
                remedy="search for each, or use lance_hybrid_search in SQL",
            )
        self._table = table
        self._options = options
        self._search = self._prepared(fragment)
        _ = self._search.words, self.schema  # what makes no sense is refused now
        for ordering in options.orderings:
            score_layout(table.snapshot.schema, [ordering.column_name])

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._layout.schema

    @property
    def is_exact(self) -> bool:
        """Whether all rows are searched."""
        return not self._options.fast_search

    def table(self) -> pa.Table:
        """Search, and read the result."""
        skip, most = self._options.offset or 0, self._options.limit
        if not self._options.orderings:
            return self._taken(self._layout, self._rows())
        ranking = self._search.run()
        keys = [self._keys(ordering.column_name, ranking) for ordering in self._options.orderings]
        names = [str(i) for i in range(len(keys))]
        rows = self._taken(self._layout, ranking)
        return sort_table(rows, pa.table(keys, names), self._options.orderings).slice(skip, most)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Search, and yield the batches of the result; columns are fetched for a batch at a time."""
        size = self._options.batch_size
        if size is None or self._options.orderings:
            yield from self.table().to_batches(size)
            return
        rows = self._rows()
        for start in range(0, len(rows), size):
            yield self._batch(self._layout, rows.slice(start, size))

    def count(self) -> int:
        """Search, and count the rows of the result."""
        return len(self._rows())

    def explain(self, verbose: bool = False) -> str:
        """Return what the search will do."""
        return "\n".join(self._explained(verbose)) + "\n"

    def analyze(self, counting: bool = False) -> str:
        """Search, and say what it took."""
        began = time.perf_counter()
        log: list[str] = []
        with watched() as reads:
            rows = self._rows(log)
            if not counting:
                self._taken(self._layout, rows)
        took = (time.perf_counter() - began) * 1000
        lines = [*self._explained(verbose=True), *(f"  {text}" for text in log)]
        lines.append(f"  read: {reads.size} bytes in {reads.ranges} requests")
        lines.append(f"  took: {took:.1f} ms, {len(rows)} rows")
        return "\n".join(lines) + "\n"

    def _explained(self, verbose: bool) -> Iterator[str]:
        return explain(self._search, self._options, self.schema.names, verbose=verbose)

    def _rows(self, log: list[str] | None = None) -> Ranking:
        """Return the rows of the result, unsorted."""
        skip, most = self._options.offset or 0, self._options.limit
        ranking = self._search.run(None if most is None else skip + most, log)
        return ranking.slice(skip, most)

    def _prepared(self, fragment: Fragment | None) -> TextSearch:
        options, table = self._options, self._table
        is_post = options.prefilter is False
        post = table.known.filter(table.snapshot.schema, options) if is_post else None
        inner = ScanOptions(
            columns=[],
            filter=None if is_post else options.filter,
            parameters=None if is_post or options.filter is None else options.parameters,
            fragments=options.fragments,
            use_scalar_index=options.use_scalar_index,
        )
        plan: ScanPlan = table.plan(inner, fragment)
        query = full_text_query(options.full_text_query, table.snapshot)
        workers = None if options.use_threads else 1
        return TextSearch(table, query, plan, post, bool(options.fast_search), workers)

    @cached_property
    def _layout(self) -> ScoreLayout:
        options = self._options
        return score_layout(
            self._table.snapshot.schema,
            options.columns,
            with_row_id=bool(options.with_row_id),
            with_row_address=bool(options.with_row_address),
            with_scores=not options.disable_scoring_autoprojection,
        )

    def _taken(self, layout: ScoreLayout, rows: Ranking) -> pa.Table:
        return pa.Table.from_batches([self._batch(layout, rows)], layout.schema)

    def _batch(self, layout: ScoreLayout, rows: Ranking) -> pa.RecordBatch:
        return layout.batch(self._table.taker, rows.addresses, {SCORE: rows.scores})

    def _keys(self, name: str, rows: Ranking) -> pa.ChunkedArray:
        layout = score_layout(self._table.snapshot.schema, [name], with_scores=False)
        return self._taken(layout, rows).column(name)
