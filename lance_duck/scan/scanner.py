"""A scan that is decided but not begun: a pyarrow Scanner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.errors import UnsupportedError
from lance_duck.scan.filters import AllFilters, Filter, TreeFilter
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.fragment import Fragment


class LanceScanner(pads.Scanner):  # type: ignore[misc]
    """Rows of a table, read when asked for, and as often as asked for.

    Args:
        table: What to read.
        options: What the caller asked for.
        fragment: The only fragment to read, None for those of the options.
        handle: From a fragment's metadata to the handle that `scan_batches` gives with its batches.
    """

    def __init__(
        self,
        table: TableScan,
        options: ScanOptions,
        fragment: Fragment | None = None,
        handle: Callable[[Fragment], pads.Fragment | None] = lambda _: None,
    ) -> None:
        self._table = table
        self._options = options
        self._handle = handle
        self._plan = table.plan(options, fragment)

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._plan.projection.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._table.snapshot.schema.scan_arrow

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the result."""
        return self._table.reader(self._plan, self._options)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the result."""
        yield from self.to_reader()

    def to_table(self) -> pa.Table:
        """Read the result into memory."""
        return self.to_reader().read_all()

    def to_pandas(self, **kwargs: Any) -> Any:
        """Read the result into a pandas DataFrame; arguments go to `pyarrow.Table.to_pandas`."""
        return self.to_table().to_pandas(**kwargs)

    def scan_batches(self) -> Iterator[Any]:
        """Yield the batches of the result, each with its fragment: (record_batch, fragment)."""
        if self._options.orderings or self._plan.limit is not None or self._plan.offset or self._plan.strict_batches:
            for batch in self.to_reader():
                yield pads.TaggedRecordBatch(batch, None)
            return
        for fragment in self._plan.fragments:
            for batch in LanceScanner(self._table, self._options, fragment).to_reader():
                yield pads.TaggedRecordBatch(batch, self._handle(fragment))

    def count_rows(self) -> int:
        """Number of rows of the result; without a filter from metadata alone."""
        return self._table.count(self._plan)

    def head(self, num_rows: int) -> pa.Table:
        """The first rows of the result."""
        batches, left = [], num_rows
        reader = self.to_reader()
        for batch in reader if num_rows > 0 else ():
            batches.append(batch.slice(0, left))
            left -= batches[-1].num_rows
            if left <= 0:
                break
        reader.close()
        return pa.Table.from_batches(batches, self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """Rows of the result by position."""
        return self.to_table().take(indices)

    def explain_plan(self, verbose: bool = False) -> str:
        """What the scan will do, in a few lines.

        Args:
            verbose: Name the fields that are read, with their ids.
        """
        return "\n".join(_explain(self._table, self._plan, self._options, verbose)) + "\n"

    def analyze_plan(self, count_rows: bool = False) -> str:
        """What `explain_plan` says, and what a scan took.

        Args:
            count_rows: Count the rows instead of reading them.
        """
        began = time.perf_counter()
        if count_rows:
            rows, batches, size = self.count_rows(), 0, 0
        else:
            sizes = [(batch.num_rows, batch.nbytes) for batch in self.to_reader()]
            rows, batches, size = sum(n for n, _ in sizes), len(sizes), sum(n for _, n in sizes)
        took = (time.perf_counter() - began) * 1000
        return f"{self.explain_plan(verbose=True)}  took: {took:.1f} ms, {rows} rows, {batches} batches, {size} bytes\n"

    @staticmethod
    def from_dataset(*_: Any, **__: Any) -> LanceScanner:
        """Refused: a scanner comes from `LanceDataset.scanner`."""
        raise UnsupportedError("a scanner is not made this way", remedy="use dataset.scanner(…)")

    @staticmethod
    def from_fragment(*_: Any, **__: Any) -> LanceScanner:
        """Refused: a scanner comes from `LanceFragment.scanner`."""
        raise UnsupportedError("a scanner is not made this way", remedy="use fragment.scanner(…)")

    @staticmethod
    def from_batches(*_: Any, **__: Any) -> LanceScanner:
        """Refused: a scanner of batches is pyarrow's own."""
        raise UnsupportedError("a scanner is not made this way", remedy="use pyarrow.dataset.Scanner.from_batches")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<LanceScanner of {self._table.snapshot.uri}: {', '.join(self.projected_schema.names)}>"


def _explain(table: TableScan, plan: ScanPlan, options: ScanOptions, verbose: bool) -> Iterator[str]:
    snapshot = table.snapshot
    yield f"LanceScan: uri={snapshot.uri}, version={snapshot.version}"
    yield f"  columns: {', '.join(plan.projection.schema.names) or 'none'}"
    yield f"  fragments: {len(plan.fragments)} of {len(snapshot.fragments)}"
    if plan.filter is not None:
        yield f"  filter: {plan.filter} ({_evaluator(plan.filter)})"
        yield f"  read first, for the filter: {_names([r.name for r in plan.first_reads], plan.hidden_in_filter)}"
        yield f"  read then, for the rows left: {_names([r.name for r in plan.later_reads], plan.hidden)}"
    else:
        yield f"  read: {_names([r.name for r in plan.later_reads], plan.hidden)}"
    if options.orderings:
        sorts = [f"{o.column_name} {'ascending' if o.ascending else 'descending'}" for o in options.orderings]
        yield f"  sort: {', '.join(sorts)}"
    if plan.limit is not None or plan.offset:
        yield f"  limit: {'none' if plan.limit is None else plan.limit}, offset: {plan.offset}"
    if verbose:
        for read in (*plan.first_reads, *plan.later_reads):
            yield f"  fields of {read.name}: {', '.join(str(f.id) for f in read.field.walk())} as {read.arrow_type}"


def _names(columns: list[str], hidden: tuple[str, ...]) -> str:
    return ", ".join([*columns, *hidden]) or "nothing"


def _evaluator(condition: Filter) -> str:
    if isinstance(condition, AllFilters):
        return ", ".join(_evaluator(part) for part in condition.parts)
    if isinstance(condition, TreeFilter):
        return "on Arrow columns"
    return "by DuckDB" if hasattr(condition, "parameters") else "by pyarrow"
