"""Constants of SQL text as Arrow scalars of the column that they are compared with.

A constant is taken only where DuckDB compares the same values that Arrow does: no rounding, no implicit cast of the
column.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

_DATE: Final = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_TIMESTAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?)?")
_MOMENTS: Final = {"date": _DATE, "text": _TIMESTAMP, "timestamp": _TIMESTAMP}
_MAX_DIGITS: Final = 15
_EXACT_INT: Final = {"float": 2**24, "double": 2**53}
_EPOCH: Final = dt.datetime(1970, 1, 1)
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class NotSimpleError(Exception):
    """The text needs DuckDB."""


@dataclass(frozen=True)
class Literal:
    """A constant as written.

    Attributes:
        kind: number, text, date, timestamp (of typed SQL literals), or value (a Python value).
        value: The digits, the text, or the value.
    """

    kind: str
    value: Any


def scalar_for(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    """The constant as a scalar of `type_`.

    Raises:
        NotSimpleError: It is not exactly a value of that type, or DuckDB might see it otherwise.
    """
    if literal.kind == "value" and literal.value is None:
        return pa.scalar(None, type_)
    for holds, convert in _CONVERTERS:
        if holds(type_):
            return convert(literal, type_)
    raise NotSimpleError


def _integer(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind == "number" and re.fullmatch(r"-?\d+", literal.value):
        value = int(literal.value)
    elif literal.kind == "value" and type(literal.value) is int:
        value = literal.value
    else:
        raise NotSimpleError
    bits = type_.bit_width
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if pa.types.is_signed_integer(type_) else (0, 2**bits - 1)
    return _checked(low <= value <= high and abs(value) < 2**63, value, type_)


def _floating(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind == "value" and type(literal.value) is float and type_ == pa.float64():
        return pa.scalar(literal.value, type_)
    number = _number(literal)
    whole = number == number.to_integral_value() and abs(number) <= _EXACT_INT[str(type_)]
    short = type_ == pa.float64() and len(number.as_tuple().digits) <= _MAX_DIGITS
    return _checked(whole or short, float(number), type_)


def _decimal(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    try:
        return pa.scalar(_number(literal), type_)
    except pa.ArrowInvalid as error:
        raise NotSimpleError from error


def _number(literal: Literal) -> Decimal:
    if literal.kind == "number" or (literal.kind == "value" and type(literal.value) is int):
        return Decimal(literal.value)
    raise NotSimpleError


def _text(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    plain = literal.kind == "text" or (literal.kind == "value" and type(literal.value) is str)
    return _checked(plain and "\0" not in literal.value, literal.value, type_)


def _boolean(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    return _checked(literal.kind == "value" and type(literal.value) is bool, literal.value, type_)


def _date(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    if literal.kind in ("text", "date") and _DATE.fullmatch(literal.value):
        value = _parsed(dt.date.fromisoformat, literal.value)
    elif literal.kind == "value" and type(literal.value) is dt.date:
        value = literal.value
    else:
        raise NotSimpleError
    return pa.scalar(value, type_)


def _timestamp(literal: Literal, type_: pa.DataType) -> pa.Scalar:
    value = literal.value
    if literal.kind == "value" and type(value) is dt.date:
        value = dt.datetime(value.year, value.month, value.day)
    elif literal.kind in _MOMENTS and _MOMENTS[literal.kind].fullmatch(value):
        value = _parsed(dt.datetime.fromisoformat, value)
    elif literal.kind != "value" or type(value) is not dt.datetime or value.tzinfo is not None:
        raise NotSimpleError
    micros = (value - _EPOCH) // dt.timedelta(microseconds=1)
    count = micros * _PER_SECOND[type_.unit]
    return _checked(count % 10**6 == 0 and abs(count // 10**6) < 2**63, count // 10**6, type_)


def _checked(fits: bool, value: Any, type_: pa.DataType) -> pa.Scalar:
    if not fits:
        raise NotSimpleError
    return pa.scalar(value, type_)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise NotSimpleError from error


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


_CONVERTERS: Final[tuple[tuple[Callable[[pa.DataType], bool], Callable[[Literal, pa.DataType], pa.Scalar]], ...]] = (
    (pa.types.is_integer, _integer),
    (lambda t: t in (pa.float32(), pa.float64()), _floating),
    (pa.types.is_decimal128, _decimal),
    (_is_text, _text),
    (lambda t: t == pa.bool_(), _boolean),
    (pa.types.is_date32, _date),
    (lambda t: pa.types.is_timestamp(t) and t.tz is None, _timestamp),
)
