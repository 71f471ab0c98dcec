"""Implements `LanceDataset.sql` on a connection whose only Lance table is one version of one table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.connection import Connection, connect
from lance_duck.duck.failures import own_errors
from lance_duck.duck.statement.clauses import Clauses, statements_of
from lance_duck.duck.statement.head import StatementHead
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.table import DuckTable
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.scan.sql_query import SqlRequest, set_engine

_BATCH: Final = 8192
_PLAN: Final = ["plan_type", "plan"]
_QUERIES: Final = frozenset(
    ["select", "from", "values", "table", "pivot", "unpivot", "summarize", "describe", "desc", "show"]
)
_COMBINED: Final = (("group", "by"), ("union",), ("intersect",), ("except",), ("into",))


class NumberedTable(DuckTable):
    """The rows of one table version. The last columns contain row ids and row addresses.

    Args:
        dataset: The version.
        numbers: Names of the columns with row ids and row addresses.
    """

    def __init__(self, dataset: LanceDataset, numbers: list[str]) -> None:
        self._numbers = numbers
        super().__init__(lambda: dataset, pinned=True, hidden=False)

    def filtered_schema(self, dataset: LanceDataset) -> pa.Schema:
        """See `DuckTable.filtered_schema`."""
        return self._numbered(super().filtered_schema(dataset))

    def _schema(self, dataset: LanceDataset) -> pa.Schema:
        return self._numbered(super()._schema(dataset))

    def _numbered(self, schema: pa.Schema) -> pa.Schema:
        return pa.schema([*schema, *(pa.field(name, pa.uint64()) for name in self._numbers)], schema.metadata)


def run_query(request: SqlRequest) -> pa.RecordBatchReader:
    """Run a query on one version of a table.

    Raises:
        InvalidInputError: The text is not a single statement.
        UnsupportedError: The statement changes a table.
        duckdb.Error: DuckDB rejects the statement.
    """
    statements = statements_of(request.sql)
    if len(statements) != 1:
        raise InvalidInputError(
            "LanceDataset.sql runs one query", expected="one statement", found=f"{len(statements)} statements"
        )
    word = StatementHead.of(statements[0]).verb
    if word is not None and word not in _QUERIES:
        raise UnsupportedError(
            f"LanceDataset.sql cannot run {word.upper()}",
            expected="a query",
            remedy="change tables with lance_duck.connect(folder).sql or with methods of LanceDataset",
        )
    numbers = [
        name for name, is_asked in ((ROW_ID, request.with_row_id), (ROW_ADDRESS, request.with_row_addr)) if is_asked
    ]
    connection = connect({} if numbers else {request.table_name: request.dataset}, read_only=True)
    try:
        if numbers:
            connection.register(request.table_name, NumberedTable(request.dataset, numbers))
            relation = _numbered(connection, statements[0], numbers)
        else:
            relation = connection.sql(request.sql)
        if relation is None:
            raise InvalidInputError("the statement returns no rows", expected="a query", found=request.sql)
        reader = relation.to_arrow_reader(request.batch_size or _BATCH)
    except BaseException:
        connection.close()
        raise
    schema = reader.schema
    if statements[0].word(0) == "explain":
        schema = pa.schema([field.with_name(name) for field, name in zip(schema, _PLAN, strict=True)])
    return pa.RecordBatchReader.from_batches(schema, _batches(reader, schema, connection))


def _batches(reader: pa.RecordBatchReader, schema: pa.Schema, connection: Connection) -> Iterator[pa.RecordBatch]:
    with connection, own_errors(), reader:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _numbered(connection: Connection, statement: Clauses, numbers: list[str]) -> Any:
    """Return the rows of a query. If each result row is a table row, ids and addresses follow the columns."""
    relation = connection.sql(statement.text)
    columns = [] if relation is None else relation.columns
    columns_text = [quoted(name) for name in numbers if name not in columns]
    body = StatementHead.of(statement).body
    place = body.find("from")
    if not columns_text or statement.word(0) == "explain" or place < 0 or not _selects_rows(body):
        return relation
    start = body.tokens[place].start
    text = f"{statement.sql[statement.start : start]}, {', '.join(columns_text)} {statement.sql[start : statement.end]}"
    try:
        return connection.sql(text)
    except duckdb.BinderException:  # an aggregate, or the columns of a different table
        return relation


def _selects_rows(body: Clauses) -> bool:
    """Return whether a statement is a SELECT that does not combine rows."""
    is_plain = body.word(0) == "select" and body.word(1) != "distinct"
    return is_plain and all(body.find(*words) < 0 for words in _COMBINED)


set_engine(run_query)
