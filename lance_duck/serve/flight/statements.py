"""Runs the statements of Flight clients.

A query is planned when its rows are fetched. A change runs when a client asks where its rows are, because drivers may
commit before they fetch: see docs/decisions/server.md.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from lance_duck.duck.changes.effects import EffectKind, effects
from lance_duck.duck.statement.head import FirstWords, StatementKind
from lance_duck.duck.statement.placeholder_types import placeholder_types
from lance_duck.duck.statement.placeholders import placeholders_in
from lance_duck.duck.statement.text import Statement
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.serve.flight.batches import without_dictionaries
from lance_duck.serve.flight.kept import KeptRows
from lance_duck.serve.flight.messages import packed_values, unpacked_values
from lance_duck.serve.flight.transactions import FlightTransactions
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.statements import StatementRows, check_sql_size, checked_effects, run_statements
from lance_duck.wire.pb.flight_sql_pb2 import Handle

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection

_RETURNING: Final = re.compile(r"\breturning\b", re.IGNORECASE)
_TRANSACTIONS: Final = frozenset((StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK))


class FlightStatements:
    """The statements of clients.

    Args:
        transactions: The open transactions.
    """

    def __init__(self, transactions: FlightTransactions) -> None:
        self._transactions = transactions
        self._kept = KeptRows()

    def prepare(self, call: ServerCall, handle: Handle) -> tuple[pa.Schema | None, pa.Schema]:
        """Return the schema of a statement's rows, and the schema of its placeholders.

        The first is None for a change, and if DuckDB needs the values of placeholders.
        """
        names = placeholder_names(handle.query)
        types = placeholder_types(handle.query, partial(self._table_schema, call, handle)) if names else {}
        parameters = pa.schema([(name, types.get(name, pa.string())) for name in names])
        if not _reads(handle.query):
            checked_effects(call, handle.query)
            return None, parameters
        try:
            values = pa.table({name: pa.nulls(1) for name in names})
            return without_dictionaries(self._schema(call, handle, values)), parameters
        except (duckdb.Error, InvalidInputError):
            if not names:
                raise
            return None, parameters

    def schema(self, call: ServerCall, handle: Handle) -> pa.Schema:
        """Return the schema of a query's rows. The schema of a change has no columns."""
        if not _reads(handle.query):
            return pa.schema([])
        return without_dictionaries(self._schema(call, handle, _values(handle)))

    def start(self, call: ServerCall, handle: Handle) -> tuple[Handle | None, int]:
        """Run a statement if it is a change.

        Returns:
            The handle of its rows, or None if it has no rows; and the number of changed rows, or -1 if it is unknown.
        """
        if _reads(handle.query):
            return _unique(handle), -1
        with self._run(call, handle, _values(handle)) as rows:
            if not _RETURNING.search(handle.query) and rows.schema.names in ([], ["Count"]):
                return None, _count(rows)
            kept = pa.Table.from_batches(_bounded(call, rows), rows.schema)
        unique = _unique(handle)
        self._kept.keep(unique.id, call.caller, kept)
        return unique, kept.num_rows

    def rows(self, call: ServerCall, handle: Handle) -> Generator[pa.Schema | pa.RecordBatch]:
        """Yield the schema of a statement's rows, and then the rows.

        Raises:
            RequestError: The handle is one of a change whose rows are not kept.
        """
        if not _reads(handle.query):
            table = self._kept.take(handle.id, call.caller)
            yield table.schema
            yield from table.to_batches()
            return
        with self._run(call, handle, _values(handle)) as rows:
            batches = _bounded(call, rows)
            if not handle.transaction_id:
                yield rows.schema
                yield from batches
                return
            schema, kept = rows.schema, [*batches]  # the next statement of the transaction would end a stream
        yield schema
        yield from kept

    def change(self, call: ServerCall, handle: Handle, values: Iterable[pa.RecordBatch] | None = None) -> int:
        """Run a change once for each row of values, all or none. Return the number of changed rows, or -1.

        Args:
            call: The request.
            handle: The statement.
            values: Values of placeholders. None runs the statement once, with the values of the handle.
        """
        if values is None:
            with self._run(call, handle, _values(handle)) as rows:
                return _count(rows)
        total = 0
        with self.cursor(call, handle.transaction_id) as (cursor, is_own):
            if is_own:
                cursor.begin()
            for batch in values:
                for row in range(batch.num_rows):
                    found = _run_on(call, cursor, handle.query, pa.Table.from_batches([batch.slice(row, 1)]))
                    with closing(found.batches):
                        total += max(0, _count(found))
            if is_own:
                cursor.commit()
        return total

    def bind(self, handle: Handle, batches: Iterable[pa.RecordBatch]) -> Handle:
        """Return a handle with values of placeholders.

        Raises:
            RequestError: There is not exactly one row of values.
        """
        given = [batch for batch in batches if batch.num_rows]
        if sum(batch.num_rows for batch in given) != 1:
            raise RequestError("a query takes one row of values", found=sum(batch.num_rows for batch in given))
        bound = Handle()
        bound.CopyFrom(handle)
        bound.parameters = packed_values(given[0])
        return bound

    @contextmanager
    def cursor(self, call: ServerCall, transaction: bytes | None) -> Iterator[tuple[Connection, bool]]:
        """Yield the connection of a transaction or a new one, and whether it is new."""
        if not transaction:
            yield call.cursor(), True
            return
        using = self._transactions.using(transaction, call.caller, call.seconds_left)
        with using as cursor, call.using(cursor):
            yield cursor, False

    @contextmanager
    def _run(
        self, call: ServerCall, handle: Handle, values: pa.Table | None, max_rows: int | None = None
    ) -> Iterator[StatementRows]:
        with ExitStack() as stack:
            cursor, _ = stack.enter_context(self.cursor(call, handle.transaction_id))
            rows = _run_on(call, cursor, handle.query, values, max_rows)
            stack.enter_context(closing(rows.batches))
            yield rows

    def _table_schema(self, call: ServerCall, handle: Handle, table: str) -> pa.Schema:
        """Return the schema of a table in the transaction of a statement. It is empty if the table cannot be read."""
        query = Handle(query=f"FROM {table}", transaction_id=handle.transaction_id)
        try:
            return without_dictionaries(self._schema(call, query, None))
        except (duckdb.Error, NotFoundError):
            return pa.schema([])

    def _schema(self, call: ServerCall, handle: Handle, values: pa.Table | None) -> pa.Schema:
        with self._run(call, handle, values, 0) as rows:
            return rows.schema


def placeholder_names(query: str) -> list[str]:
    """Return the names of the placeholders of a text: numbers, or words in the order of the text."""
    statement = Statement.of(query)
    if statement.marks:
        return [str(number) for number in range(1, len(statement.marks) + 1)]
    names = dict.fromkeys(name for name, _ in placeholders_in(statement.tokens))
    return sorted(names, key=int) if all(name.isdecimal() for name in names) else [*names]


def new_handle(query: str, transaction: bytes | None) -> Handle:
    """Return the handle of a statement. Raises RequestError if its text is too large."""
    check_sql_size(query)
    return Handle(query=query, transaction_id=transaction)


def _unique(handle: Handle) -> Handle:
    """Return a handle that no other request has, so that it can be cancelled."""
    unique = Handle()
    unique.CopyFrom(handle)
    unique.id = secrets.token_bytes(16)
    return unique


def _reads(query: str) -> bool:
    return all(each.kind is EffectKind.READ for each in effects(query))


def _values(handle: Handle) -> pa.Table | None:
    return unpacked_values(handle.parameters) if handle.parameters else None


def _run_on(
    call: ServerCall, cursor: Connection, query: str, values: pa.Table | None, max_rows: int | None = None
) -> StatementRows:
    head = FirstWords.of(query)
    if head.kind in _TRANSACTIONS and len(effects(query)) == 1:
        raise RequestError(
            "transactions of Flight clients begin and end through the driver",
            found=query[:40],
            remedy="turn off autocommit, and call commit or rollback of the connection",
        )
    return run_statements(call, query, _parameters(query, values), max_rows=max_rows, cursor=cursor)


def _parameters(query: str, values: pa.Table | None) -> Sequence[Any] | Mapping[str, Any] | None:
    """Return the values of a row for placeholders, by name if the columns have their names, else by position.

    Raises:
        RequestError: The number of values is wrong.
    """
    names = placeholder_names(query)
    columns = [] if values is None else values.column_names
    if len(columns) != len(names):
        raise RequestError("wrong number of values for placeholders", expected=len(names), found=len(columns))
    if values is None or not names:
        return None
    row = dict(zip(columns, (column[0].as_py() for column in values.columns), strict=True))
    if names[0].isdecimal():
        return [*row.values()]
    return row if {*columns} == {*names} else dict(zip(names, row.values(), strict=True))


def _bounded(call: ServerCall, rows: StatementRows) -> Iterator[pa.RecordBatch]:
    settings = call.settings
    return call.limited(rows.batches, max_rows=settings.max_rows, max_bytes=settings.max_bytes)


def _count(rows: StatementRows) -> int:
    """Read all rows of a change, and return the number of changed rows. Returns -1 if it is unknown."""
    last = -1
    for batch in rows.batches:
        if rows.schema.names == ["Count"] and batch.num_rows:
            last = batch.column(0)[-1].as_py()
    return last
