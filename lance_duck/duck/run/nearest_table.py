"""A table source that only returns rows that may be among the nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.dataset import LanceDataset
from lance_duck.duck.run.candidates import Ask, NotFoundHere, candidates
from lance_duck.duck.tables.scan_observer import WATCHES, Scan
from lance_duck.duck.tables.table import DuckTable
from lance_duck.redact import shown
from lance_duck.scan.duckdb.batches import duckdb_batches
from lance_duck.scan.duckdb.source import PushedScan
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.explain import of_log
from lance_duck.scan.predicate.tree import Predicate


class FoundRows(pads.Dataset):  # type: ignore[misc]
    """A source of rows that a search has found, for DuckDB 1.x.

    DuckDB 1.x pushes the runtime filters of a join through ORDER BY and LIMIT into Arrow tables, which would change the
    rows that LIMIT returns. This dataset ignores the filters. The join still applies them.

    Args:
        rows: The rows.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.obj = self
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        """Schema of the rows."""
        return self._rows.schema

    def scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """Return columns of all rows."""
        rows = self._rows if columns is None else self._rows.select(list(columns))
        return PushedScan(rows.schema, rows.to_reader)


class NearestTable(DuckTable):
    """The nearest rows for a statement with ORDER BY and LIMIT. The search runs when DuckDB scans the table.

    If a search cannot find the nearest rows, the whole table is read.

    Args:
        resolve: See `DuckTable`.
        ask: The request of the statement.
        is_steady: Returns whether the request is still valid. Called when DuckDB scans.
    """

    def __init__(self, resolve: Callable[[], LanceDataset], ask: Ask, is_steady: Callable[[], bool]) -> None:
        super().__init__(resolve, hidden=False)
        self._ask = ask
        self._is_steady = is_steady

    def rows(self) -> int:
        """Return the number of rows that the search requests."""
        return self._ask.first

    def accepts(self, predicate: Any) -> bool:
        """Return False: the search already applies the conditions."""
        return False

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        schema = duckdb_arrow_schema(self.dataset.schema)
        output = schema if columns is None else pa.schema([schema.field(i) for i in columns])
        return self._found(output, any_form=True).__arrow_c_stream__(), columns is not None

    def scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`. Filters are ignored. They come from a join, which also applies them."""
        schema = duckdb_arrow_schema(self.dataset.schema)
        output = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        return PushedScan(output, lambda: self._found(output, any_form=False))

    def explained(self, parts: Sequence[Predicate] = ()) -> str:
        """See `DuckTable.explained`. Only the search is described."""
        return "\n".join(explained(self.dataset, self._ask)) + "\n"

    def _found(self, output: pa.Schema, *, any_form: bool) -> pa.RecordBatchReader:
        dataset = self.dataset
        try:
            if not self._is_steady():
                raise NotFoundHere("names or settings were changed")
            rows = candidates(dataset, self._ask).select(output.names).to_reader()
        except NotFoundHere:
            rows = duckdb_batches(dataset.duckdb_reader(output, None, any_form=any_form))
        for watch in WATCHES:
            scan = Scan(dataset, output.names, None, plan=self.explained())
            watch.scans.append(scan)
            rows = scan.counted(rows)
        return rows


def explained(dataset: LanceDataset, ask: Ask) -> Iterator[str]:
    """Yield the plan lines for the candidate search."""
    try:
        scanner = ask.scanner(dataset, ask.first)
        candidates(dataset, ask)
    except NotFoundHere as why:
        yield f"LanceScan: uri={shown(dataset.uri)}, version={dataset.version}"
        yield from of_log(dataset.handle.snapshot)
        yield f"  ORDER BY … LIMIT: by DuckDB, of all rows: {why}"
        return
    yield from (line for line in scanner.explain_plan().splitlines() if not line.startswith("  columns:"))
    how = "none is left out" if scanner.is_exact else "as an index finds them"
    yield f"  ORDER BY … LIMIT: by DuckDB, of the rows that may be the nearest ({how})"
