"""A full-text query as a filter: selects matching rows, without scores."""

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
    """Filter of the rows that match a query: see `scan.filters.Filter`. The search runs once, when its rows are needed.

    Attributes:
        search: The search, of the whole table.
        implied_exactly: True, since `implied` is equivalent to the filter.
        evaluator: Name of the evaluator, for explanations.
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
        """The predicate on addresses that is true for the rows that match."""
        return In((ROW_ADDRESS,), self._rows)

    @cached_property
    def _rows(self) -> pa.Array:
        return pa.array(self.search.matches().names)

    def __str__(self) -> str:
        return str(self.search.query)


def with_text_filter(table: TableScan, options: ScanOptions) -> ScanOptions:
    """Return options in which a full-text query as the filter is replaced by a `FullTextFilter`.

    Raises:
        InvalidInputError: The query does not fit this table, or parameters are given with it.
    """
    query = options.filter
    if not isinstance(query, FullTextQuery):
        return options
    if options.parameters is not None:
        raise InvalidInputError("parameters need an SQL string", found=type(query).__name__)
    workers = None if options.use_threads else 1
    search = TextSearch(table, query, table.plan(ScanOptions(columns=[])), workers=workers)
    _ = search.words  # bad queries are rejected now
    return replace(options, filter=FullTextFilter(search))
