"""Evaluates VALUES of plain constants without DuckDB.

    (1, 0.5, 'text', true, NULL, DEFAULT)   →  values of the columns

DEFAULT is NULL here: stored defaults have replaced it. Only constants and column types that do not depend on DuckDB
settings are supported. DuckDB evaluates the rows if an item is not a constant, or if it cannot be converted to the
column's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.duck.changes.target import TargetColumn
from lance_duck.duck.statement.clauses import Clauses

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?(?=[0-9.]{2,16}$)[0-9]+\.[0-9]+")
_TEXT: Final = re.compile(r"'((?:[^'\0]|'')*)'")
_NULLS: Final = frozenset({"null", "default"})
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_EXACT: Final = 1 << 53
"""Integers up to this value are exact as doubles. Decimals with digits up to this value convert to the nearest
double."""

Read = Callable[[str], Any]
"""Converts a constant to the column's value. Raises LookupError if DuckDB must evaluate it."""


def constant_rows(columns: Sequence[TargetColumn], rows: Sequence[Sequence[Clauses]]) -> pa.Table | None:
    """Return rows of constants as a table. Returns None if DuckDB has to evaluate them.

    Args:
        columns: The columns that receive values.
        rows: The items of each row, one for each column.
    """
    readers = [_reader(column) for column in columns]
    if None in readers:
        return None
    try:
        arrays = [
            pa.array([_value(column, read, row[place]) for row in rows], column.arrow)
            for place, (column, read) in enumerate(zip(columns, readers, strict=True))
        ]
    except (LookupError, OverflowError, pa.ArrowException, UnicodeError):
        return None
    return pa.table(arrays, names=[column.name for column in columns])


def _value(column: TargetColumn, read: Read | None, item: Clauses) -> Any:
    assert read is not None
    text = item.text.rstrip()
    if text.lower() in _NULLS:
        if not column.nullable:
            raise LookupError
        return None
    return read(text)


def _reader(column: TargetColumn) -> Read | None:
    """Return the parser for a column's constants. Returns None if its type is not supported."""
    if pa.types.is_integer(column.arrow):
        return _whole
    if pa.types.is_float64(column.arrow):
        return _double
    if pa.types.is_string(column.arrow) or pa.types.is_large_string(column.arrow):
        return _text if column.type == "VARCHAR" else None
    return _boolean if pa.types.is_boolean(column.arrow) else None


def _whole(text: str) -> int:
    if _WHOLE.fullmatch(text) is None:
        raise LookupError
    return int(text)


def _double(text: str) -> float:
    if _DECIMAL.fullmatch(text) is not None:
        return float(text) or 0.0  # a DECIMAL zero does not have a sign
    whole = _whole(text)
    if abs(whole) > _EXACT:
        raise LookupError
    return float(whole)


def _text(text: str) -> str:
    match = _TEXT.fullmatch(text)
    if match is None:
        raise LookupError
    return match[1].replace("''", "'")


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]
