"""Converts SQL constants to Arrow scalars for comparison with a column.

A constant is accepted only if DuckDB and Arrow compare the same values. DuckDB must not round values, or cast the
column implicitly.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.arguments import is_unicode
from lance_duck.arrow.types import is_binary, is_naive, is_text

_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_ZONED: Final = re.compile(r"(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(?:\.\d{1,6})?)([+-]\d{2}(?::\d{2})?|Z)")
_TIME: Final = re.compile(r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?")
_MOMENTS: Final = {"date": _DATE, "text": _TIMESTAMP, "timestamp": _TIMESTAMP}
MOMENTS: Final = ("timestamp", "timestamptz", "value")
"""Kinds of constants with which a date is compared as a timestamp."""
_FLOAT: Final = re.compile(r"[+-]?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+|nan|inf|infinity)", re.IGNORECASE)
_SINGLES: Final = ("float", "real", "float4")
_FLOATS: Final = (*_SINGLES, "double", "float8")
_INTEGERS: Final = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    **dict.fromkeys(("int", "integer"), pa.int32()),
    "bigint": pa.int64(),
}
_DECIMAL: Final = re.compile(r"(?:decimal|numeric)\((\d{1,2}),(\d{1,2})\)")
_WHOLE: Final = re.compile(r"-?\d+(?:\.0*)?")
MAX_DIGITS: Final = 15
"""Maximum digit count for which different decimal numbers are always different doubles."""
EXACT_INT: Final = {"float": 2**24, "double": 2**53}
"""Largest n for which a floating-point type represents all integers up to n."""
_EPOCH: Final = dt.datetime(1970, 1, 1)
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class NotSimpleError(Exception):
    """The text is not simple, and DuckDB must evaluate it."""


@dataclass(frozen=True)
class Literal:
    """A constant of SQL text.

    Attributes:
        kind: number, text, double or value (a Python value). For typed SQL literals: date, timestamp, timestamptz, time
            or blob.
        value: The digits, the text, or the Python value.
    """

    kind: str
    value: Any


def scalar_for(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    """Return the constant as a scalar of `type_`.

    Raises:
        NotSimpleError: The type cannot represent the constant exactly, or DuckDB might interpret it differently.
    """
    if literal.kind == "value" and literal.value is None:
        return pa.scalar(None, type_)
    for holds, convert in _CONVERTERS:
        if holds(type_):
            return convert(literal, type_)
    raise NotSimpleError


def integer_range(type_: pa.DataType) -> tuple[int, int]:
    """Return the minimum and maximum of an integer type."""
    bits = type_.bit_width
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(type_) else (0, 2**bits - 1)


def numeric(digits: str) -> Literal:
    """Return the constant for the digits of a number. With an exponent, it is a DOUBLE."""
    if "e" not in digits.lower():
        return Literal("number", digits)
    value = float(digits)
    return _fits(math.isfinite(value), Literal("double", value))


def cast_literal(literal: Literal, name: str) -> Literal:
    """Return a constant cast with `::` to the named type.

    Raises:
        NotSimpleError: The cast may change the value, or the type is not supported.
    """
    text = literal.value if literal.kind in ("text", "number") else None
    if text is None:
        raise NotSimpleError
    if name in ("date", "timestamp", "timestamptz", "time", "blob") and literal.kind == "text":
        return Literal(name, text)
    if name in _FLOATS and _FLOAT.fullmatch(text):
        return Literal("double", float(np.float32(text)) if name in _SINGLES else float(text))
    if name in _INTEGERS and literal.kind == "number" and re.fullmatch(r"-?\d+", text):
        low, high = integer_range(_INTEGERS[name])
        return _fits(low <= int(text) <= high, literal)
    shape = _DECIMAL.fullmatch(name)
    if shape is not None and literal.kind == "number":
        digits, scale = int(shape[1]), int(shape[2])
        value = Decimal(text)
        exponent = value.as_tuple().exponent
        fits = isinstance(exponent, int) and -exponent <= scale and abs(int(value)) < 10 ** (digits - scale)
        return _fits(fits, literal)
    raise NotSimpleError


def _fits(holds: bool, literal: Literal) -> Literal:
    if not holds:
        raise NotSimpleError
    return literal


def _integer(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind == "number" and _WHOLE.fullmatch(literal.value):
        value = int(literal.value.partition(".")[0])
    elif literal.kind == "value" and type(literal.value) is int:
        value = literal.value
    else:
        raise NotSimpleError
    low, high = integer_range(type_)
    return _checked(low <= value <= high and abs(value) < 2**63, value, type_)


def _floating(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind in ("value", "double") and type(literal.value) is float:
        # DuckDB widens the column, which keeps its order. A constant of the column's type therefore compares the same.
        with np.errstate(over="ignore"):
            single = float(np.float32(literal.value))
        same = math.isnan(literal.value) or type_ == pa.float64() or single == literal.value
        return _checked(bool(same), literal.value, type_)
    value = exact_number(literal)
    whole = value == value.to_integral_value() and abs(value) <= EXACT_INT[str(type_)]
    short = type_ == pa.float64() and len(value.as_tuple().digits) <= MAX_DIGITS
    return _checked(whole or short, float(value), type_)


def _decimal(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(exact_number(literal), type_)
    except pa.ArrowInvalid as error:
        raise NotSimpleError from error


def exact_number(literal: Literal) -> Decimal:
    """Return the value of a constant that is an exact number.

    Raises:
        NotSimpleError: The constant is not an exact number.
    """
    if literal.kind == "number" or (literal.kind == "value" and type(literal.value) is int):
        return Decimal(literal.value)
    if literal.kind == "value" and type(literal.value) is Decimal and literal.value.is_finite():
        return literal.value
    raise NotSimpleError


def _text(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    plain = literal.kind == "text" or (literal.kind == "value" and type(literal.value) is str)
    return _checked(plain and "\0" not in literal.value and is_unicode(literal.value), literal.value, type_)


def _boolean(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    return _checked(literal.kind == "value" and type(literal.value) is bool, literal.value, type_)


def _date(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind in ("text", "date") and _DATE.fullmatch(literal.value):
        value = _parsed(dt.date.fromisoformat, literal.value)
    elif literal.kind == "value" and type(literal.value) is dt.date:
        value = literal.value
    else:
        # DuckDB widens the column, which keeps its order. A timestamp at midnight therefore compares like the date.
        moment = moment_of(_fits(literal.kind in MOMENTS, literal))
        return _checked(moment.time() == dt.time(), moment.date(), type_)
    return pa.scalar(value, type_)


def _timestamp(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    value = literal.value
    is_instant = literal.kind == "timestamptz" or (type(value) is dt.datetime and value.tzinfo is not None)
    # DuckDB compares instants in microseconds, and would truncate the column's values.
    return _ticks(moment_of(_fits(not is_instant or type_.unit != "ns", literal)) - _EPOCH, type_)


def _instant(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    """Return a timestamp with a time zone. Text without a time zone is in UTC, as in the evaluator."""
    return _ticks(
        moment_of(Literal("timestamptz", literal.value) if literal.kind == "text" else literal) - _EPOCH, type_
    )


def _time(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    value = literal.value
    if literal.kind in ("text", "time") and _TIME.fullmatch(value):
        value = _parsed(dt.time.fromisoformat, value)
    elif literal.kind != "value" or type(value) is not dt.time or value.tzinfo is not None:
        raise NotSimpleError
    return _ticks(dt.datetime.combine(_EPOCH, value) - _EPOCH, type_)


def _bytes(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    value = literal.value
    if literal.kind in ("text", "blob") and value.isascii() and value.isprintable() and "\\" not in value:
        value = value.encode()
    elif literal.kind != "value" or type(value) is not bytes:
        raise NotSimpleError
    return _checked(not pa.types.is_fixed_size_binary(type_) or len(value) == type_.byte_width, value, type_)


def moment_of(literal: Literal) -> dt.datetime:
    """Return a date or timestamp constant in UTC. Without a time zone, it is interpreted as UTC.

    Raises:
        NotSimpleError: The constant is not a date or a timestamp.
    """
    value = literal.value
    if literal.kind == "timestamptz":
        zoned = _ZONED.fullmatch(value)
        if zoned is None:
            return moment_of(Literal("text", value))
        value = _parsed(dt.datetime.fromisoformat, zoned[1] + zoned[2].replace("Z", "+00:00"))
        literal = Literal("value", value)
    if literal.kind == "value" and type(value) is dt.date:
        return dt.datetime(value.year, value.month, value.day)
    if literal.kind == "value" and type(value) is dt.datetime:
        in_utc: dt.datetime = _parsed(lambda moment: moment.astimezone(dt.UTC), value) if value.tzinfo else value
        return in_utc.replace(tzinfo=None)
    if literal.kind not in _MOMENTS or not _MOMENTS[literal.kind].fullmatch(value):
        raise NotSimpleError
    parsed: dt.datetime = _parsed(dt.datetime.fromisoformat, value)
    return parsed


def _ticks(since: dt.timedelta, type_: pa.DataType) -> pa.Scalar:
    """Return a scalar of a timestamp or time type, from the time since the epoch or midnight."""
    count = since // dt.timedelta(microseconds=1) * _PER_SECOND[type_.unit]
    return _checked(count % 10**6 == 0 and abs(count // 10**6) < 2**63, count // 10**6, type_)


def _checked(fits: bool, value: Any, type_: pa.DataType) -> pa.Scalar:
    if not fits:
        raise NotSimpleError
    return pa.scalar(value, type_)


def _parsed(parse: Callable[[Any], Any], text: Any) -> Any:
    try:
        return parse(text)
    except (OverflowError, ValueError) as error:
        raise NotSimpleError from error


_CONVERTERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Literal, pa.DataType], pa.Scalar]], ...]] = (
    (pa.types.is_integer, _integer),
    (lambda t: t in (pa.float32(), pa.float64()), _floating),
    (pa.types.is_decimal128, _decimal),
    (is_text, _text),
    (lambda t: t == pa.bool_(), _boolean),
    (pa.types.is_date32, _date),
    (is_naive, _timestamp),
    # DuckDB truncates instants and times of day to microseconds, including the column's values.
    (lambda t: pa.types.is_timestamp(t) and t.unit != "ns", _instant),
    (lambda t: pa.types.is_time(t) and t.unit != "ns", _time),
    (is_binary, _bytes),
)
