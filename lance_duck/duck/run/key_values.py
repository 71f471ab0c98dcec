"""Converts the keys of a semi-join to the type of the large table's column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any, Final

import pyarrow as pa

_WHOLE: Final = frozenset(
    {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}
    | {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"}
)
_TIMESTAMP_US: Final = pa.timestamp("us")
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")


def keys_as(values: Sequence[Any], sql_type: str, type_: pa.DataType) -> pa.Array | None:
    """Return the non-NULL keys that the column can contain, or None if SQL may compare them differently.

    Args:
        values: The values, as DuckDB returns them to Python.
        sql_type: Their DuckDB type.
        type_: Storage type of the column.
    """
    known = [value for value in values if value is not None]
    if are_integers(sql_type) and pa.types.is_integer(type_):
        low, high = _range(type_)
        return pa.array([value for value in known if low <= value <= high], type_)
    if not _same(sql_type, type_) or any(_is_edge(value) for value in known):
        return None
    try:
        return pa.array(known, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def are_integers(sql_type: str) -> bool:
    """Return whether a DuckDB type holds integers."""
    return sql_type in _WHOLE


def _same(sql_type: str, type_: pa.DataType) -> bool:
    """Return whether DuckDB reads the column as this type, and compares values like Arrow."""
    match sql_type:
        case "VARCHAR":
            return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
        case "BLOB":
            return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_))
        case "DATE":
            return bool(pa.types.is_date32(type_))
        case "TIMESTAMP":
            return bool(type_ == _TIMESTAMP_US)
        case "FLOAT":
            return bool(pa.types.is_float32(type_))
        case "DOUBLE":
            return bool(pa.types.is_float64(type_))
    shape = _DECIMAL.fullmatch(sql_type)
    return bool(
        shape and pa.types.is_decimal128(type_) and (int(shape[1]), int(shape[2])) == (type_.precision, type_.scale)
    )


def _range(type_: pa.DataType) -> tuple[int, int]:
    if pa.types.is_unsigned_integer(type_):
        return 0, (1 << type_.bit_width) - 1
    return -(1 << (type_.bit_width - 1)), (1 << (type_.bit_width - 1)) - 1


def _is_edge(value: object) -> bool:
    """Return whether a date or time may represent infinity, or a value outside of Python's range."""
    return isinstance(value, date) and value.year in (date.min.year, date.max.year)
