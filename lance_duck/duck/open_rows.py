"""Measures statements until their rows are read: from a connection, from a relation, or from an Arrow reader.

A call that reads rows adds its duration. The time between two calls belongs to the program, and is left out. An Arrow
reader has no such calls: it reads from its begin until it is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final
from weakref import WeakKeyDictionary, finalize

import duckdb
import pyarrow as pa

from lance_duck.duck.running_statement import RunningStatement

_PARTS: Final = ("fetchone", "fetchmany", "fetch_df_chunk", "execute", "show", "__repr__")
"""Methods that may leave rows."""
_READS: Final = (
    *(
        "fetchall",
        "fetchdf",
        "df",
        "to_df",
        "fetchnumpy",
        "fetch_arrow_table",
        "to_arrow_table",
        "arrow",
        "pl",
        "torch",
    ),
    *("tf", "to_dicts", "to_csv", "write_csv", "to_parquet", "write_parquet", "materialize"),
    *("to_arrow_reader", "fetch_arrow_reader", "fetch_record_batch"),
)
"""Methods that read all rows, or return a reader."""
_DERIVES: Final = (
    *("aggregate", "cross", "distinct", "except_", "filter", "intersect", "join", "limit", "order", "project"),
    *("select", "set_alias", "sort", "union"),
)
"""Methods that return a relation over the same rows."""
_STATEMENTS: Final[WeakKeyDictionary[Any, RunningStatement]] = WeakKeyDictionary()
"""Statements of relations and Arrow readers."""


class OpenRows:
    """The rows that a connection has not returned yet."""

    def __init__(self) -> None:
        self._statement: RunningStatement | None = None

    def opened(self, statement: RunningStatement, answer: Any) -> Any:
        """Let a statement go on while its answer, a relation or this connection, has rows. Returns the answer."""
        if answer is not None and statement.keep_rows():
            if isinstance(answer, duckdb.DuckDBPyRelation):
                _STATEMENTS[answer] = statement
            else:
                self._statement = statement
        return answer

    def finish(self) -> bool:
        """End the statement, because its remaining rows are not read. Returns whether there was one."""
        statement, self._statement = self._statement, None
        if statement is not None:
            statement.end()
        return statement is not None

    def reading(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method of the connection that also measures the statement whose rows it reads."""
        if name not in _PARTS and name not in _READS:
            return method

        @wraps(method)
        def call(*arguments: Any, **options: Any) -> Any:
            statement = self._statement
            if statement is None:
                return method(*arguments, **options)
            rows = _read(statement, name, partial(method, *arguments, **options))
            if name not in _PARTS:
                self._statement = None
            return rows

        return call


def statement_of(rows: Any) -> RunningStatement | None:
    """Return the statement whose rows a relation or an Arrow reader reads, or None."""
    return _STATEMENTS.get(rows)


def _read(statement: RunningStatement, name: str, call: Callable[[], Any]) -> Any:
    """Read rows of a statement."""
    if not statement.resume():
        return call()
    try:
        rows = call()
    except BaseException as error:
        statement.end(error)
        raise
    if isinstance(rows, pa.RecordBatchReader):
        _STATEMENTS[rows] = statement
        finalize(rows, statement.end, is_dropped=True).atexit = False
    elif name in ("show", "__repr__", "execute") or (name in _PARTS and rows is not None and len(rows)):
        statement.pause()
    else:
        statement.end()
    return rows


def _measured(native: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a method of relations that also measures their statement."""

    @wraps(native)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        statement = statement_of(self)
        if statement is None or not statement.is_open:
            return native(self, *arguments, **options)
        return _read(statement, name, partial(native, self, *arguments, **options))

    return call


def _passed_on(native: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of relations that passes the statement on to its result."""

    @wraps(native)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        derived, statement = native(self, *arguments, **options), statement_of(self)
        if statement is not None:
            _STATEMENTS[derived] = statement
        return derived

    return call


def _replace_methods() -> None:
    relation = duckdb.DuckDBPyRelation
    for name in _DERIVES:
        setattr(relation, name, _passed_on(getattr(relation, name)))
    for name in (*_READS, *_PARTS):
        native = getattr(relation, name, None)
        if native is not None:
            setattr(relation, name, _measured(native, name))


_replace_methods()
