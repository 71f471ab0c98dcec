"""A full-text query as a filter. It selects the matching rows, without scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.types import Columns
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import In, Path, Predicate
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.scan.text.search import TextSearch


@dataclass(frozen=True, eq=False)
class FullTextFilter:
    """A filter for the rows that match a query: see `scan.filters.Filter`. The search runs once, on first use.

    Attributes:
        search: The search of the whole table.
        implied_exactly: True, because `implied` is equivalent to the filter.
        evaluator: Name of the evaluator, for plans.
    """

    search: TextSearch
    implied_exactly: bool = True
    evaluator: str = "by full-text search"

    def paths(self) -> tuple[Path, ...]:
        """Return the hidden column of addresses."""
        return ((ROW_ADDRESS,),)

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return the mask of the rows that match."""
        return pc.is_in(columns[ROW_ADDRESS], value_set=self._rows)

    @property
    def implied(self) -> Predicate:
        """The predicate on row addresses that is true for the matching rows."""
        return In((ROW_ADDRESS,), self._rows)

    @cached_property
    def _rows(self) -> pa.Array:
        return pa.array(self.search.matches().names)

    def __str__(self) -> str:
        return str(self.search.query)


def with_text_filter(table: TableScan, options: ScanOptions) -> ScanOptions:
    """Return the options. If the filter is a full-text query, a `FullTextFilter` replaces it.

    Raises:
        InvalidInputError: The query does not fit this table, or the options also contain parameters.
    """
    query = options.filter
    if not isinstance(query, FullTextQuery):
        return options
    if options.parameters is not None:
        raise InvalidInputError("parameters need an SQL string", found=type(query).__name__)
    workers = None if options.use_threads else 1
    search = TextSearch(table, query, table.plan(ScanOptions(columns=[])), workers=workers)
    _ = search.words  # rejects invalid queries early
    return replace(options, filter=FullTextFilter(search))
