"""SQL with subqueries. DuckDB evaluates it over the whole table.

Subqueries refer to the table as `target`, or by the name of its directory.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb.batches import duckdb_batches
from lance_duck.scan.duckdb.nodes import predicate_from_node, predicate_from_nodes
from lance_duck.scan.duckdb.pushed import ByCaller, predicate_from_pushed
from lance_duck.scan.duckdb.source import PushedScan, ScanSource
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.evaluator.expressions import query_tables
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.indexes.indexed_columns import indexed_columns
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.scan.projection import HIDDEN, ROW_ADDRESS, readable_schema
from lance_duck.scan.sql.spelling import QUOTED, quote_names
from lance_duck.scan.sql.vet import refuse_loose_ends
from lance_duck.scan.table_scan import TableScan

TARGET: Final = "target"


def has_subquery(text: str) -> bool:
    """Return whether SQL text contains a SELECT."""
    return re.search(r"\bselect\b", QUOTED.sub(" ", text), re.IGNORECASE) is not None


def addresses_where(table: TableScan, text: str, parameters: Parameters = None) -> NDArray[np.uint64]:
    """Return the addresses of the rows for which a condition with subqueries is true, ascending.

    Args:
        table: The table. Subqueries refer to it as `target`, or by its directory name without ".lance".
        text: SQL condition on the columns of the table, including hidden columns.
        parameters: Values bound to the SQL text.

    Raises:
        InvalidInputError: DuckDB rejects the text or fails on a value, or the text is not a condition.
    """
    target = _Target(table, text)
    kind = target.run(f"SELECT {target.sql} AS answer FROM {TARGET} LIMIT 0", parameters)  # noqa: S608
    if not pa.types.is_boolean(kind.schema.field(0).type):
        raise InvalidInputError(
            "the condition is not Boolean", where=repr(text), expected="BOOLEAN", found=kind.schema.field(0).type
        )
    rows = target.run(f'SELECT "{ROW_ADDRESS}" FROM {TARGET} WHERE {target.sql}', parameters)  # noqa: S608
    addresses: NDArray[np.uint64] = rows.column(0).to_numpy()
    return distinct(addresses)


def values_of(table: TableScan, text: str, sql_type: str) -> tuple[NDArray[np.uint64], pa.ChunkedArray]:
    """Evaluate an expression with subqueries for each row. Returns the ascending row addresses, and the values.

    Args:
        table: The table: see `addresses_where`.
        text: SQL expression. Its subqueries refer to the table as in `addresses_where`.
        sql_type: DuckDB's name of the type that the values are cast to.

    Raises:
        InvalidInputError: DuckDB rejects the text, or fails on a value.
    """
    target = _Target(table, text)
    sql = f'SELECT "{ROW_ADDRESS}", CAST({target.sql} AS {sql_type}) FROM {TARGET} ORDER BY 1'  # noqa: S608
    rows = target.run(sql)
    return rows.column(0).to_numpy(), rows.column(1)


class _Target:
    """The table that SQL text reads.

    Attributes:
        sql: The SQL text in parentheses, for use as an operand.
    """

    def __init__(self, table: TableScan, text: str) -> None:
        refuse_loose_ends(text, "expression")
        names = readable_schema(table.snapshot.schema).names
        self.sql = f"({quote_names(text, names)}\n)"
        self._text = text
        stem = re.sub(r"\.lance$", "", table.snapshot.uri.rstrip("/").rpartition("/")[2])
        scanned = _scannable(table, _named(text, names))
        self._tables = dict.fromkeys([TARGET, *([stem] if stem else [])], scanned)

    def run(self, sql: str, parameters: Parameters = None) -> pa.Table:
        """Run a query."""
        try:
            return query_tables(sql, self._tables, parameters, text=self._text)
        except InvalidInputError as error:
            raise InvalidInputError("bad expression", where=repr(self._text), found=error.found) from error


def _named(text: str, names: list[str]) -> list[str]:
    """Return the columns that the SQL text may read.

    These are the columns whose names occur in it. If the text contains a star, all columns that are not hidden.
    """
    if "*" in QUOTED.sub(" ", text):
        return [name for name in names if name not in HIDDEN]
    lower = text.lower()
    return [name for name in names if name.lower() in lower]


def _scannable(table: TableScan, names: list[str]) -> object:
    columns = list(dict.fromkeys([*names, ROW_ADDRESS]))
    plan = table.plan(ScanOptions(columns=columns, fragments=[], blob_handling="all_binary"))
    return _Scannable(table, plan.projection.schema)


class _Scannable(pads.Dataset, ScanSource):  # type: ignore[misc]
    """Columns of a table for DuckDB. Filters are pushed down if this is faster."""

    def __init__(self, table: TableScan, schema: pa.Schema) -> None:
        self.obj = self
        self._table = table
        self._stored = schema
        self._schema = duckdb_arrow_schema(schema)

    @property
    def schema(self) -> pa.Schema:
        """Columns in the Arrow types that DuckDB reads."""
        return self._schema

    def count_rows(self) -> int:
        """Count rows from metadata alone."""
        return self._table.snapshot.count_rows()

    def accepts(self, predicate: Any) -> bool:
        """See `ScanSource.accepts`."""
        accepted = predicate_from_node(predicate, self._stored)
        return accepted is not None and self._table.filter_pays(accepted)

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """See `ScanSource.stream`."""
        stream_schema = self._schema if columns is None else pa.schema([self._schema.field(i) for i in columns])
        reader = self.duckdb_reader(stream_schema, predicate_from_nodes(filters, self._stored))
        return duckdb_batches(reader).__arrow_c_stream__(), columns is not None

    def pushed_scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """See `ScanSource.pushed_scanner`."""
        scan_schema = self._schema if columns is None else pa.schema([self._schema.field(name) for name in columns])
        predicate = None if filter is None else predicate_from_pushed(filter, self._stored)
        return PushedScan(scan_schema, lambda: duckdb_batches(self.duckdb_reader(scan_schema, predicate)))

    def duckdb_reader(
        self, schema: pa.Schema, predicate: Predicate | None, *, any_form: bool = False
    ) -> pa.RecordBatchReader:
        """See `ScanSource.duckdb_reader`."""
        return self._table.predicate_reader(schema, predicate)

    def indexed_columns(self) -> frozenset[str]:
        """See `ScanSource.indexed_columns`."""
        return indexed_columns(self._table.snapshot)

    def index_estimate(self, predicate: Predicate) -> int | None:
        """See `ScanSource.index_estimate`."""
        return self._table.index_estimate(predicate)

    scanner = ByCaller(pushed_scanner, pushed_scanner)
