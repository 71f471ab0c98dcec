"""Writes the rows that a driver uploads in bulk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lance_duck.duck.changes.effects import EffectKind, effects
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import BodyTooLargeError, ForbiddenError, RequestError
from lance_duck.wire.pb import flight_sql_pb2 as messages

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection

_ROWS: Final = "__flight_rows"
_EXISTS: Final = """
FROM information_schema.tables
WHERE lower(table_name) = lower($1) AND lower(table_schema) = lower(coalesce($2, current_schema()))
    AND lower(table_catalog) = lower(coalesce($3, current_database()))
"""
"""A statement that does not fail: an error would end the transaction."""
_COMMAND: Final = messages.CommandStatementIngest


def ingest(
    call: ServerCall, cursor: Connection, asked: messages.CommandStatementIngest, rows: pa.RecordBatchReader
) -> int:
    """Create a table with rows, replace it, or append to it. Return the number of rows.

    Args:
        call: The request.
        cursor: Connection that runs the statements.
        asked: Name of the table, and what happens if it exists or is missing.
        rows: The rows.

    Raises:
        NotFoundError: The table does not exist and is not to be created.
        AlreadyExistsError: The table exists, and rows are not to be appended.
        BodyTooLargeError: The rows are too large.
        ForbiddenError: The table would be in a database of DuckDB itself, which all callers share.
    """
    if asked.temporary:
        raise RequestError("a server keeps no temporary tables", remedy="leave out temporary")
    if asked.options:
        raise RequestError("unknown options", found=sorted(asked.options), expected="no options")
    parts = [part for part in (asked.catalog, asked.schema, asked.table) if part]
    if not asked.table:
        raise InvalidInputError("the upload names no table")
    name, rules = ".".join(map(quoted, parts)), asked.table_definition_options
    exists = _exists(cursor, asked)
    if exists and rules.if_exists not in (_COMMAND.IF_EXISTS_APPEND, _COMMAND.IF_EXISTS_REPLACE):
        raise AlreadyExistsError("the table exists", where=".".join(parts), remedy="append to it, or replace it")
    if not exists and rules.if_not_exist != _COMMAND.IF_NOT_EXIST_CREATE:
        raise NotFoundError("no such table", where=".".join(parts), remedy="create it")
    if exists and rules.if_exists == _COMMAND.IF_EXISTS_APPEND:
        head = f"INSERT INTO {name} BY NAME"
    else:
        head = f"CREATE {'OR REPLACE ' if exists else ''}TABLE {name} AS"
    statement = f"{head} FROM {_ROWS}"
    if effects(statement)[0].kind is not EffectKind.CHANGE:
        raise ForbiddenError("a server does not write to this database", found=".".join(parts))
    counted = _Counted(call, rows)
    reader = pa.RecordBatchReader.from_batches(rows.schema, counted.batches())
    cursor.execute_with(statement, _ROWS, reader)
    return counted.rows


def _exists(cursor: Connection, asked: messages.CommandStatementIngest) -> bool:
    values = [asked.table, asked.schema or None, asked.catalog or None]
    return bool(cursor.execute(_EXISTS, values).fetchall())


class _Counted:
    """Counts uploaded rows.

    Attributes:
        rows: Number of rows so far.
    """

    def __init__(self, call: ServerCall, reader: pa.RecordBatchReader) -> None:
        self.rows = 0
        self._call = call
        self._reader = reader

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches. Raises BodyTooLargeError."""
        size, limit = 0, self._call.settings.max_body
        for batch in self._reader:
            self._call.check()
            self.rows += batch.num_rows
            size += batch.nbytes
            if size > limit:
                raise BodyTooLargeError("the upload is too large", expected=f"at most {limit} bytes")
            yield batch
        self._call.check()
