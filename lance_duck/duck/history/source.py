"""A source of computed rows for DuckDB to scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.scan.duckdb.pushed import predicate_from_pushed
from lance_duck.scan.duckdb.source import PushedScan, ScanSource
from lance_duck.scan.predicate.evaluate import mask
from lance_duck.scan.predicate.tree import Predicate

Batches = Callable[[Sequence[str]], Iterator[pa.RecordBatch]]
"""Yields rows with the columns of the given names, in that order."""


class BatchRows(pads.Dataset, ScanSource):  # type: ignore[misc]
    """Rows that are computed at each scan. DuckDB applies all filters if its version supports that.

    Args:
        schema: Columns, with types that DuckDB supports.
        batches: Returns the rows.
        rows: Number of rows, if known.
    """

    def __init__(self, schema: pa.Schema, batches: Batches, rows: int | None = None) -> None:
        self.obj = self
        self._schema = schema
        self._batches = batches
        self._rows = rows

    @classmethod
    def of(cls, table: pa.Table) -> BatchRows:
        """Return the rows of a table."""
        return cls(table.schema, lambda names: iter(table.select(list(names)).to_batches()), table.num_rows)

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def __arrow_c_schema__(self) -> object:
        """See `ScanSource`."""
        return self._schema.__arrow_c_schema__()

    def rows(self) -> int | None:
        """See `ScanSource`."""
        return self._rows

    def accepts(self, predicate: Any) -> bool:
        """Return False: DuckDB must apply all filters."""
        return False

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        names = [self._schema.names[i] for i in (range(len(self._schema)) if columns is None else columns)]
        return self._reader(names).__arrow_c_stream__(), columns is not None

    def scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`. DuckDB 1.x does not check whether a filter is accepted."""
        names = self._schema.names if columns is None else list(columns)
        condition = None if filter is None else predicate_from_pushed(filter, self._schema)
        return PushedScan(self._wanted(names), lambda: self._reader(names, condition))

    def _wanted(self, names: Sequence[str]) -> pa.Schema:
        return pa.schema([self._schema.field(name) for name in names])

    def _reader(self, names: Sequence[str], condition: Predicate | None = None) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._wanted(names), self._chosen(names, condition))

    def _chosen(self, names: Sequence[str], condition: Predicate | None) -> Iterator[pa.RecordBatch]:
        for batch in self._batches(names):
            if condition is None:
                yield batch
            else:
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                yield batch.filter(mask(condition, columns, batch.num_rows))
