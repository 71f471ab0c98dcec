"""SQL of callers: which statements may run, and their rows."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck.duck.changes.effects import Effect, EffectKind, effects
from lance_duck.duck.failures import meaning_of
from lance_duck.duck.open_rows import statement_of
from lance_duck.duck.places import places_below
from lance_duck.duck.running_statement import RunningStatement
from lance_duck.serve.gate import text_size
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import ForbiddenError, RequestError
from lance_duck.serve.gate.tokens import Role

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection

_ROWS_PER_BATCH: Final = 8192


@dataclass(frozen=True)
class StatementRows:
    """The rows of a statement.

    Attributes:
        schema: Their schema.
        batches: The rows, computed while they are read.
    """

    schema: pa.Schema
    batches: Generator[pa.RecordBatch]


def run_statements(
    call: ServerCall,
    text: str,
    parameters: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    max_rows: int | None = None,
    reads_only: bool = False,
    shows_place: bool = True,
    cursor: Connection | None = None,
) -> StatementRows:
    """Run SQL, and return the rows of its last statement. The caller bounds them with `call.limited`.

    A query runs while its rows are read. Several statements all run before the first row is returned. An open
    transaction is rolled back at the end of the call.

    Args:
        call: The request.
        text: One statement, or several, separated by semicolons.
        parameters: Values of `?` or `$name` placeholders.
        max_rows: Maximum number of rows of a query. It then stops early.
        reads_only: Whether to refuse changes, whatever the caller may do.
        shows_place: Whether the rows contain the served folder, unless the server hides it.
        cursor: Connection with a transaction. None runs the text on a new one.

    Raises:
        ForbiddenError: A statement is not allowed for this caller.
        RequestError: The server does not take SQL, or the text is empty or too long.
        duckdb.Error: DuckDB rejects a statement.
    """
    kinds = checked_effects(call, text, reads_only=reads_only)
    cursor, settings = cursor or call.cursor(), call.settings
    with places_below("" if shows_place and settings.locations else settings.place):
        try:
            relation = cursor.sql(text) if parameters is None else cursor.sql(text, params=parameters)
        except RecursionError:
            raise RequestError("the statement or its parameters are nested too deeply") from None
        if relation is not None and max_rows is not None and kinds[-1].kind is EffectKind.READ:
            relation = relation.limit(max_rows)
        reader = relation.to_arrow_reader(_ROWS_PER_BATCH) if relation is not None else _nothing()
    return StatementRows(reader.schema, batches_of(reader))


def checked_effects(call: ServerCall, text: str, *, reads_only: bool = False) -> list[Effect]:
    """Return the effects of a caller's statements, all of which are allowed.

    Raises:
        ForbiddenError: A statement is not allowed for this caller.
        RequestError: The text is empty or too long.
        duckdb.ParserException: The text is not SQL.
    """
    if not call.settings.sql:
        raise ForbiddenError("the server does not take SQL", remedy="start it without --no-sql")
    check_sql_size(text)
    kinds = effects(text)
    if not kinds:
        raise RequestError("the SQL text has no statement")
    for each in kinds:
        if reads_only and each.kind is not EffectKind.READ:
            raise ForbiddenError("this request only reads", found=each.words, remedy="send the statement with POST")
        _check(call, each)
    return kinds


def check_sql_size(text: str) -> None:
    """Check the size of a text before anything parses it.

    Raises:
        RequestError: The text is too long, or has too many parts of a kind: see `text_size`.
    """
    text_size.check_size(text)


def _check(call: ServerCall, effect: Effect) -> None:
    if effect.kind is EffectKind.READ:
        return
    if effect.kind is not EffectKind.CHANGE:
        raise ForbiddenError("a server does not run this statement", found=effect.words)
    if not call.settings.write:
        raise ForbiddenError("the server only reads", found=effect.words, remedy="start it with --write")
    if call.caller.role is not Role.WRITE:
        raise ForbiddenError("the token only reads", where=call.caller.name, found=effect.words)


def _nothing() -> pa.RecordBatchReader:
    return pa.schema([]).empty_table().to_reader()


def batches_of(reader: pa.RecordBatchReader) -> Generator[pa.RecordBatch]:
    """Yield the batches of a reader. At the end, close it, and end the measurement of its statement.

    Raises:
        LanceDuckError: A table cannot be read.
        duckdb.Error: DuckDB rejects a value.
    """
    statement = statement_of(reader)
    try:
        with reader:
            while (batch := _next(reader, statement)) is not None:
                yield batch
    finally:
        if statement is not None:
            statement.end()


def _next(reader: pa.RecordBatchReader, statement: RunningStatement | None) -> pa.RecordBatch | None:
    """Return the next batch, or None at the end. Raises as `batches_of` does."""
    try:
        return next(reader, None)
    except (OSError, RuntimeError, pa.ArrowException) as error:
        meaning = meaning_of(error)
        if statement is not None:
            statement.end(meaning)
        if meaning is error or isinstance(meaning, KeyboardInterrupt):  # the call was stopped, not the server
            raise
        raise meaning from error
