"""Searches for words that are planned once, and run with many queries."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa

from lance_duck.scan.nearest.lone_columns import LoneColumns
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.scored.layout import SCORE
from lance_duck.scan.scored.scan import ScoredRows
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.lone import BestRows, LoneColumn, lone_column, lone_query
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery
from lance_duck.scan.text.request import full_text_query
from lance_duck.scan.text.scan import TextScan
from lance_duck.store.request import is_watched


class WordSearch:
    """A search for words by the fast way, planned before the queries are known. Safe to run from several threads.

    Args:
        table: The table.
        options: The options of the search, with one of the queries.

    Raises:
        InvalidInputError, UnsupportedError: See `TextScan`.
    """

    def __init__(self, table: TableScan, options: ScanOptions) -> None:
        scan = TextScan(table, options)
        self._table = table
        self._scan = scan
        self._skip = options.offset or 0
        self._most = self._skip + (options.limit or 0)
        self._is_whole = scan.is_whole and scan.caches_filter
        self._has_filter = scan.has_filter
        self._fast = bool(options.fast_search)
        self._columns: dict[object, LoneColumn | None] = {}

    @property
    def nbytes(self) -> int:
        """Size in memory of the segments that the search refers to, in bytes."""
        return sum(each.nbytes for each in list(self._columns.values()) if each is not None)

    def table(self, request: Any) -> pa.Table | None:
        """Return the result of a query, or None if the query must go the ordinary way.

        Args:
            request: Any form of a query: see `full_text_query`.

        Raises:
            InvalidInputError, WrongTypeError: The request is not a valid query.
        """
        rows = self.rows(request)
        if rows is None:
            return None
        table = self._lone_columns.table(rows.addresses, rows.scores)
        if table is not None:
            return table
        return self._scan.taken(ScoredRows(rows.addresses, {SCORE: rows.scores}))

    def rows(self, request: Any) -> BestRows | None:
        """Return the rows of the result of a query: see `table`."""
        if not self._is_whole or is_watched():
            return None
        query = lone_query(full_text_query(request, self._table.snapshot))
        column = None if query is None else self._column(query)
        if query is None or column is None:
            return None
        rows = column.best(query, self._most, self._scan.filtered() if self._has_filter else None)
        if rows is None or not self._skip:
            return rows
        return BestRows(rows.scores[self._skip :], rows.addresses[self._skip :])

    def _column(self, query: MatchQuery | PhraseQuery) -> LoneColumn | None:
        """Return the fast way of a query's column, or None if there is none."""
        key = query.column, query.document_granularity
        if key not in self._columns:
            self._columns[key] = lone_column(self._table, *key, fast=self._fast)
        return self._columns[key]

    @cached_property
    def _lone_columns(self) -> LoneColumns:
        has_row_ids = self._table.snapshot.has_stable_row_ids or self._table.snapshot.log is not None
        return LoneColumns(self._scan.layout, SCORE, self._table.taker, has_row_ids=has_row_ids)
