"""Evaluation of SQL expressions on Arrow columns by DuckDB, in an isolated private database.

The database cannot access files, the network, extensions or Python variables. It runs on the calling thread, with the
time zone UTC. Each thread uses a separate cursor.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

import duckdb
import numpy as np
import pyarrow as pa

from lance_duck.arguments import is_unicode
from lance_duck.arrow.decimals import is_wide, sql_decimal
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.evaluator.errors import BATCH, words_about
from lance_duck.scan.evaluator.lance_functions import add_functions
from lance_duck.scan.evaluator.types import Columns, Parameters
from lance_duck.write.relations import relation_table
from lance_duck.write.uuids import UUID

_EMPTY: Final = "__lance_no_column"
_SETTINGS: Final = (
    "SET TimeZone='UTC'",
    "SET python_enable_replacements=false",
    "SET autoinstall_known_extensions=false",
    "SET enable_external_access=false",
    "SET lock_configuration=true",
)


def evaluate_sql(
    select: str, columns: Columns, num_rows: int, parameters: Parameters = None, *, text: str | None = None
) -> pa.Table:
    """Evaluate a select list on a batch.

    Args:
        select: SQL select list, for example '("x" > 5) AS m'.
        columns: Columns that the select list names.
        num_rows: Number of rows in the batch.
        parameters: Values bound to `?`, `$1` or `$name`.
        text: The user's part of the select list, for error messages. None means the whole select list.

    Returns:
        One row for each row of the batch, in order.

    Raises:
        InvalidInputError: DuckDB rejects the text or fails on a value, or an integer has more than 38 digits.
        UnsupportedError: A value has a type that Arrow does not support.
        KeyboardInterrupt: The user interrupted the query.
    """
    cursor = _cursor()
    cursor.register(BATCH, _as_table(columns, num_rows))
    try:
        relation = cursor.sql(f"SELECT {select} FROM {BATCH}", params=_plain(parameters))  # noqa: S608
        return relation_table(relation)
    except (InvalidInputError, UnsupportedError) as error:
        where = f"SQL {select if text is None else text}"
        raise type(error)(error.what, where=where, found=error.found, remedy=error.remedy) from error
    except (duckdb.Error, RuntimeError) as error:
        _refuse(error, "evaluation failed", select if text is None else text)
    finally:
        cursor.unregister(BATCH)


def query_tables(
    sql: str, tables: Mapping[str, Any], parameters: Parameters = None, *, text: str | None = None
) -> pa.Table:
    """Run a query over tables.

    Args:
        sql: A single SELECT statement.
        tables: Objects that DuckDB can scan, by their names in the query.
        parameters: Values bound to `?`, `$1` or `$name`.
        text: The user's part of the query, for error messages. None means the whole query.

    Raises:
        InvalidInputError: DuckDB rejects the text, or fails on a value.
        KeyboardInterrupt: The user interrupted the query.
    """
    cursor = _cursor()
    try:
        for name, table in tables.items():
            cursor.register(name, table)
        return cursor.sql(sql, params=_plain(parameters)).to_arrow_table()
    except (duckdb.Error, RuntimeError) as error:
        _refuse(error, "query failed", sql if text is None else text)
    finally:
        for name in tables:
            with contextlib.suppress(duckdb.Error):
                cursor.unregister(name)


def query(sql: str, parameters: Parameters = None) -> list[tuple[Any, ...]]:
    """Run a statement without a batch and return its rows. DuckDB errors are raised unchanged."""
    rows: list[tuple[Any, ...]] = _cursor().execute(sql, _plain(parameters)).fetchall()
    return rows


def select_columns(select: str, columns: Columns, parameters: Parameters = None) -> list[tuple[str, str]]:
    """Bind the text after SELECT, and return (name, type) of each result column. DuckDB errors are raised unchanged.

    Args:
        select: Text such as "x + 1 FROM __lance_batch". The empty table `BATCH` provides the columns.
        columns: Columns that the text names.
        parameters: Values bound to `?`, `$1` or `$name`.
    """
    cursor = _cursor()
    cursor.register(BATCH, _as_table(columns, 0))
    try:
        relation = cursor.sql(f"SELECT {select}", params=_plain(parameters))
        return [(name, str(type_)) for name, type_ in zip(relation.columns, relation.types, strict=True)]
    finally:
        cursor.unregister(BATCH)


def plain_value(value: Any) -> Any:
    """Convert a numpy scalar, which DuckDB does not accept, to a Python value. Other values are unchanged."""
    return value.item() if isinstance(value, np.bool_ | np.integer | np.floating | np.str_ | np.bytes_) else value


def _refuse(error: Exception, what: str, expression: str) -> NoReturn:
    """Convert a DuckDB error and raise it. DuckDB reports interrupts by the user in two ways."""
    text = str(error).strip()
    if text == "Query interrupted" or text.endswith("KeyboardInterrupt:"):
        raise KeyboardInterrupt from error
    if not isinstance(error, duckdb.Error):
        raise error
    raise InvalidInputError(what, where=repr(expression), found=words_about(str(error), expression)) from error


def duckdb_type(type_: pa.DataType, name: str = "column") -> pa.DataType:
    """Return the Arrow type in which a column is passed to DuckDB.

    Raises:
        UnsupportedError: DuckDB does not have an equivalent type: decimals of more than 38 digits.
    """
    if isinstance(type_, pa.BaseExtensionType):
        is_uuid = type_.extension_name == UUID  # read as DuckDB's UUID, which is comparable with strings
        return type_ if is_uuid else duckdb_type(type_.storage_type, name)
    if pa.types.is_float16(type_):
        return pa.float32()
    if pa.types.is_decimal(type_):
        decimal = sql_decimal(type_)
        if is_wide(type_):
            raise UnsupportedError(
                "DuckDB does not support decimals of this width", where=name, expected="38 digits", found=type_
            )
        return pa.decimal128(decimal.precision, decimal.scale)
    if pa.types.is_struct(type_):
        return pa.struct([f.with_type(duckdb_type(f.type, name)) for f in type_.fields])
    if pa.types.is_map(type_):
        key, item = (f.with_type(duckdb_type(f.type, name)) for f in (type_.key_field, type_.item_field))
        return pa.map_(key, item, type_.keys_sorted)
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(duckdb_type(type_.value_type, name)), type_.list_size)
    if pa.types.is_large_list(type_):
        return pa.large_list(type_.value_field.with_type(duckdb_type(type_.value_type, name)))
    if pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(duckdb_type(type_.value_type, name)))
    return type_


def _as_table(columns: Columns, num_rows: int) -> pa.Table:
    if not columns:
        return pa.table({_EMPTY: pa.nulls(num_rows, pa.int8())})
    return pa.table({name: _take_in(array, name) for name, array in columns.items()})


def _take_in(array: pa.Array, name: str) -> pa.Array:
    target = duckdb_type(array.type, name)
    if target == array.type:
        return array
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    return storage.cast(target)


def _plain(parameters: Parameters) -> Any:
    if not parameters:
        return None
    if isinstance(parameters, Mapping):
        return {name: _bindable(value) for name, value in parameters.items()}
    return [_bindable(value) for value in parameters]


def _bindable(value: Any) -> Any:
    """Return a value as DuckDB accepts it. DuckDB 1 has no error class for text that UTF-8 cannot encode."""
    plain = plain_value(value)
    if isinstance(plain, str) and not is_unicode(plain):
        raise InvalidInputError("bad parameter", expected="text that UTF-8 can encode", found=ascii(plain))
    if isinstance(plain, list) and plain and isinstance(plain[0], str | list):
        for each in plain:
            _bindable(each)
    return plain


_local = threading.local()


def _cursor() -> duckdb.DuckDBPyConnection:
    cursor: duckdb.DuckDBPyConnection | None = getattr(_local, "cursor", None)
    if cursor is None:
        with _lock:
            cursor = _local.cursor = _database().cursor()
    return cursor


_lock = threading.Lock()


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    add_functions(connection)
    for statement in _SETTINGS:
        connection.execute(statement)
    return connection


def _begin_anew() -> None:
    """Drop the database in a forked child without closing it. Closing would wait for threads that were not forked."""
    global _lock, _local
    if _database.cache_info().currsize:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_database()))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_local.__dict__))
    _database.cache_clear()
    _lock, _local = threading.Lock(), threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


@atexit.register
def _close() -> None:
    """Close the database before DuckDB's module is unloaded. DuckDB would then report the open connection."""
    _local.__dict__.clear()
    _database.cache_clear()
