"""The source that lets DuckDB scan a Lance table.

A hidden column `ROWS` of type null precedes the table's columns. If a statement does not use any column (`count(*)`,
`EXISTS`, a cross join), DuckDB requests the first column. Reading `ROWS` is free. Views and `lance_scan` exclude it:
`SELECT * EXCLUDE ("__lance_rows") FROM …`.

DuckDB 1.x chooses the columns' types and filters by the schema of a source. It then requires exactly these types, and
passes all conditions that compare a column with constants. If a column is a string_view, it passes none of them:
`docs/decisions/duckdb-1.md` has figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.scan_observer import WATCHES, Scan
from lance_duck.errors import UnsupportedError
from lance_duck.forks import Lock
from lance_duck.scan.duckdb.batches import duckdb_batches
from lance_duck.scan.duckdb.nodes import predicate_from_node, predicate_from_nodes
from lance_duck.scan.duckdb.pushed import ByCaller, predicate_from_pushed
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE, PushedScan, ScanSource
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.predicate.tree import Predicate, all_of
from lance_duck.store import local_path

ROWS: Final = "__lance_rows"
_BATCH: Final = 1 << 20
"""Row count of batches with only the column `ROWS`, which does not use memory."""

_FEW_ROWS: Final = 8192
"""Index results of up to this many rows are read before DuckDB's threads request them. `benchmarks/costs.py`: a quarter
or half of this limit makes 24,000 rows 1.2 times slower. Other differences, from 3,000 to 24,000 rows, are within
noise."""

_REPEATED_FROM: Final = 100_000
"""Minimum row count of tables in which DuckDB 1.x is told which strings repeat. Finding out takes 0.1 ms per column
and fragment (`benchmarks/tpch.py`)."""


def select_all(source: str) -> str:
    """Return SQL for the visible columns of a `DuckTable`, given its SQL name."""
    return f'SELECT * EXCLUDE ("{ROWS}") FROM {source}'  # noqa: S608


def check_has_columns(table: LanceDataset) -> None:
    """Check that a table has columns. Raises UnsupportedError."""
    if not table.schema.names:
        raise UnsupportedError(
            "SQL cannot read a table without columns",
            where=table.uri,
            remedy="add a column with LanceDataset.add_columns",
        )


@dataclass(frozen=True)
class Note:
    """A line of a plan: why no index answers a condition.

    Attributes:
        columns: Names of the columns that the condition reads, in lower case.
        text: The line.
    """

    columns: frozenset[str]
    text: str


@dataclass(frozen=True, eq=False)
class Restriction:
    """A condition that a statement implies for the rows of one of its tables. DuckDB evaluates the statement itself.

    Attributes:
        condition: The condition, or None if no rows are skipped.
        rows: Estimated number of rows that satisfy it.
        origin: The line of a plan that states where the condition comes from.
        schema: Columns of the table for which the condition was made.
        holds: Returns whether the statement still implies the condition. Called before each scan.
        notes: Further lines of the plan. A line is omitted if DuckDB passes a filter on one of its columns.
    """

    condition: Predicate | None
    rows: int
    origin: str
    schema: pa.Schema
    holds: Callable[[], bool]
    notes: tuple[Note, ...] = ()


class DuckTable(pads.Dataset, ScanSource):  # type: ignore[misc]
    """The rows of a table. At each bind by DuckDB, `resolve` returns the version to read.

    Args:
        resolve: Returns the dataset to read, such as the newest version. Called at each bind.
        pinned: Whether to resolve only once, at creation.
        hidden: Whether to add the hidden column. Without it, the source can be read with `SELECT *`.
        restriction: Restricts the rows, or None to read all rows.
        takes_conditions: Whether DuckDB 1.x passes conditions to the scan. Needs the hidden column.
    """

    def __init__(
        self,
        resolve: Callable[[], LanceDataset],
        *,
        pinned: bool = False,
        hidden: bool = True,
        restriction: Restriction | None = None,
        takes_conditions: bool = True,
    ) -> None:
        self.obj = self
        self._rows_type = pa.null() if takes_conditions else pa.string_view()
        self._hidden = hidden
        self._resolve = resolve
        self._lock = Lock()
        self._dataset = resolve() if pinned else None
        self._pinned = pinned
        self._restriction = restriction
        self._known: tuple[pa.Schema, pa.Schema] | None = None

    @property
    def dataset(self) -> LanceDataset:
        """The dataset of the last bind."""
        dataset = self._dataset
        return self._refresh() if dataset is None else dataset

    @property
    def schema(self) -> pa.Schema:
        """The hidden column, followed by the table's columns in DuckDB types."""
        if not SPEAKS_SOURCE:
            self._noted()
        return self._schema(self.dataset)

    def __arrow_c_schema__(self) -> object:
        """Return the schema for a bind. DuckDB calls this first in a bind, so it also selects the dataset."""
        if not self._pinned:
            self._refresh()
        self._noted()
        return self.schema.__arrow_c_schema__()

    def count_rows(self) -> int:
        """Return the row count of the table from metadata."""
        return int(self.dataset.count_rows())

    def accepts(self, predicate: Any) -> bool:
        """See `ScanSource.accepts`."""
        accepted = bool(self.dataset.accepts(predicate))
        self._offered(predicate, accepted=accepted)
        return accepted

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        dataset = self.dataset
        schema = self._schema(dataset)
        output = schema if columns is None else pa.schema([schema.field(i) for i in columns])
        predicate = self._with_implied(dataset, predicate_from_nodes(filters, self.filtered_schema(dataset)))
        reader = duckdb_batches(self._reader(dataset, output, predicate, any_form=True))
        expected = None if predicate is None else dataset.index_estimate(predicate)
        if expected is not None and expected <= _FEW_ROWS:
            # Read all rows now, because DuckDB threads that pull from Python wait for each other.
            return reader.read_all().__arrow_c_stream__(), columns is not None
        return reader.__arrow_c_stream__(), columns is not None

    def pushed_scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`."""
        dataset = self.dataset
        schema = self._schema(dataset)
        output = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        predicate = self._with_implied(
            dataset, None if filter is None else predicate_from_pushed(filter, self.filtered_schema(dataset))
        )
        return PushedScan(output, lambda: duckdb_batches(self._reader(dataset, output, predicate, any_form=False)))

    scanner = ByCaller(pushed_scanner, pushed_scanner)

    def filtered_schema(self, dataset: LanceDataset) -> pa.Schema:
        """Return the columns to which pushed filters may refer."""
        return dataset.schema

    def stored(self, dataset: LanceDataset, predicate: Predicate) -> Predicate:
        """Translate a DuckDB filter to a filter on stored columns."""
        return predicate

    def restricted(self, restriction: Restriction) -> DuckTable:
        """Return the version that was read last, with only the rows that satisfy a condition."""
        dataset = self.dataset
        return DuckTable(lambda: dataset, pinned=True, hidden=self._hidden, restriction=restriction)

    @property
    def is_restricted(self) -> bool:
        """Whether a restriction applies, or explains why none applies."""
        return self._restriction is not None

    @property
    def condition(self) -> Predicate | None:
        """A condition on rows that applies in addition to DuckDB's filters."""
        return None if self._restriction is None else self._restriction.condition

    def rows(self) -> int:
        """Return the row count, which is an estimate if the rows are restricted."""
        restriction = self._restriction
        return self.count_rows() if restriction is None or restriction.condition is None else restriction.rows

    def explained(self, parts: Sequence[Predicate] = ()) -> str:
        """Describe in words how the rows are found.

        Args:
            parts: DuckDB filters that a scan applies.
        """
        conditions = [part for part in (self.condition, *parts) if part is not None]
        plan = self.dataset.scanner(columns=[], filter=all_of(*conditions) if conditions else None).explain_plan()
        lines = [line for line in plan.splitlines() if not line.startswith(("  columns:", "  read"))]
        if self._restriction is not None:
            if self._restriction.condition is not None:
                lines.append(f"  {self._restriction.origin}")
            passed = {column.lower() for part in parts for column in part.columns()}
            lines += [f"  {note.text}" for note in self._restriction.notes if passed.isdisjoint(note.columns)]
        return "\n".join(lines) + "\n"

    def _noted(self) -> None:
        for watch in WATCHES:
            watch.bound.append(self)

    def _offered(self, node: Any, *, accepted: bool) -> None:
        """Notify observers of a filter that DuckDB has offered."""
        if WATCHES and (predicate := predicate_from_node(node, self.filtered_schema(self.dataset))) is not None:
            for watch in WATCHES:
                watch.offered.append((self, predicate, accepted))

    def _with_implied(self, dataset: LanceDataset, predicate: Predicate | None) -> Predicate | None:
        pushed = None if predicate is None else self.stored(dataset, predicate)
        parts = [part for part in (self.implied(dataset), pushed) if part is not None]
        return all_of(*parts) if parts else None

    def implied(self, dataset: LanceDataset) -> Predicate | None:
        """Return a condition that the scan applies in addition to DuckDB's filters, or None once it no longer holds.

        Args:
            dataset: The version that is read.
        """
        restriction = self._restriction
        if restriction is None or not restriction.schema.equals(dataset.schema) or not restriction.holds():
            return None
        return restriction.condition

    def _schema(self, dataset: LanceDataset) -> pa.Schema:
        schemas = self._known
        if schemas is None or schemas[0] is not dataset.schema:
            if self._hidden:
                check_has_columns(dataset)
            schema = duckdb_arrow_schema(dataset.schema)
            schemas = dataset.schema, self._announced(dataset, schema) if self._hidden else schema
            self._known = schemas
        return schemas[1]

    def _announced(self, dataset: LanceDataset, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the hidden column, and on DuckDB 1.x with dictionaries for strings that repeat.

        DuckDB 2.0 accepts dictionaries for any column of strings, so it does not need to know.
        """
        if not SPEAKS_SOURCE and local_path(dataset.uri) is not None and dataset.count_rows() >= _REPEATED_FROM:
            forms = dataset.handle.table.dictionaries(schema)
            schema = pa.schema(
                [field.with_type(forms.get(field.name, field.type)) for field in schema], schema.metadata
            )
        return schema.insert(0, pa.field(ROWS, self._rows_type))

    def _reader(
        self, dataset: LanceDataset, output: pa.Schema, predicate: Predicate | None, *, any_form: bool
    ) -> pa.RecordBatchReader:
        return _reader(dataset, output, predicate, any_form=any_form)

    def _refresh(self) -> LanceDataset:
        with self._lock:
            self._dataset = self._resolve()
            return self._dataset


def _reader(
    dataset: LanceDataset, output: pa.Schema, predicate: Predicate | None, *, any_form: bool
) -> pa.RecordBatchReader:
    reader = _opened(dataset, output, predicate, any_form=any_form)
    for watch in WATCHES:
        scan = Scan(dataset, output.names, predicate)
        watch.scans.append(scan)
        reader = scan.counted(reader)
    return reader


def _opened(
    dataset: LanceDataset, output: pa.Schema, predicate: Predicate | None, *, any_form: bool
) -> pa.RecordBatchReader:
    place = output.get_field_index(ROWS)
    if place < 0:
        return dataset.duckdb_reader(output, predicate, any_form=any_form)
    if len(output) == 1 and predicate is None:
        return pa.RecordBatchReader.from_batches(output, _counted(output, dataset.count_rows()))
    inner = dataset.duckdb_reader(output.remove(place), predicate, any_form=any_form)
    schema = inner.schema.insert(place, output.field(place))
    return pa.RecordBatchReader.from_batches(schema, _widened(inner, schema, place))


def _counted(schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, _BATCH):
        yield pa.record_batch([pa.nulls(min(_BATCH, rows - start), schema.field(0).type)], schema=schema)


def _widened(reader: pa.RecordBatchReader, schema: pa.Schema, place: int) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        arrays = batch.columns
        arrays.insert(place, pa.nulls(batch.num_rows, schema.field(place).type))
        yield pa.record_batch(arrays, schema=schema)
