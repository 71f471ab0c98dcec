"""Reads and evaluates VALUES of plain constants without DuckDB.

    (1, 0.5, 'text', true, NULL, DEFAULT)   →  values of the columns

DEFAULT is NULL here: stored defaults have replaced it. Only constants and column types that do not depend on DuckDB
settings are supported. DuckDB evaluates the rows if an item is not a constant, or if it cannot be converted to the
column's type. `ListedConstants` reads an INSERT of constants without its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.duck.changes.target import TargetColumn

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?(?=[0-9.]{2,16}$)[0-9]+\.[0-9]+")
_TEXT: Final = re.compile(r"'((?:[^'\0]|'')*)'")
_NULLS: Final = frozenset({"null", "default"})
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_EXACT: Final = 1 << 53
"""Integers up to this value are exact as doubles. Decimals with digits up to this value convert to the nearest
double."""

_NAME: Final = r'(?:"(?:[^"]|"")++"|[a-z_]\w*+)'
_CONSTANT: Final = r"(?:-?[0-9]++(?:\.[0-9]++)?|'(?:[^'\0]|'')*+'|true|false|null)"
_ROW: Final = rf"\(\s*+{_CONSTANT}(?:\s*+,\s*+{_CONSTANT})*+\s*+\)"
_FLAGS: Final = re.IGNORECASE | re.ASCII
_INSERT: Final = re.compile(
    rf"(\s*+insert\s++into\s++{_NAME}(?:\.{_NAME})*+\s*+(?:\(\s*+{_NAME}(?:\s*+,\s*+{_NAME})*+\s*+\)\s*+)?)"
    rf"(values\s*+{_ROW}(?:\s*+,\s*+{_ROW})*+)\s*+;?\s*+",
    _FLAGS,
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
"""Texts with a lone surrogate have no tokens."""
_CONSTANTS: Final = re.compile(_CONSTANT, _FLAGS)
_ROWS: Final = re.compile(_ROW, _FLAGS)

Read = Callable[[str], Any]
"""Converts a constant to the column's value. Raises LookupError if DuckDB must evaluate it."""


@dataclass(frozen=True)
class ListedConstants:
    """An INSERT whose source is a list of constants.

        INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y')   →   INSERT INTO t (a, b) VALUES (NULL)

    Attributes:
        shape: The statement with one NULL as its source. All statements that only differ in their constants share it.
        source: The text from VALUES on.
        rows: The constants of each row. All rows have the same length.
    """

    shape: str
    source: str
    rows: Sequence[Sequence[str]]

    @classmethod
    def of(cls, sql: str) -> ListedConstants | None:
        """Read a statement. Returns None for other statements, and for all that need DuckDB's lexer."""
        match = _INSERT.fullmatch(sql)
        if match is None or _SURROGATE.search(sql):
            return None
        rows = [_CONSTANTS.findall(row) for row in _ROWS.findall(match[2])]
        width = len(rows[0])
        if any(len(row) != width for row in rows):
            return None
        return cls(f"{match[1]}VALUES (NULL)", match[2], rows)


def constant_rows(columns: Sequence[TargetColumn], rows: Sequence[Sequence[str]]) -> pa.Table | None:
    """Return rows of constants as a table. Returns None if DuckDB has to evaluate them.

    Args:
        columns: The columns that receive values.
        rows: The text of the items of each row, one for each column.
    """
    readers = [_reader(column) for column in columns]
    if None in readers:
        return None
    try:
        arrays = [
            pa.array([_value(column, read, text) for text in texts], column.arrow)
            for column, read, texts in zip(columns, readers, zip(*rows, strict=True), strict=True)
        ]
    except (LookupError, OverflowError, pa.ArrowException, UnicodeError):
        return None
    return pa.table(arrays, names=[column.name for column in columns])


def _value(column: TargetColumn, read: Read | None, text: str) -> Any:
    assert read is not None
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
