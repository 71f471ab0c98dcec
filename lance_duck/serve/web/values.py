"""Arrow values as JSON.

| Arrow | JSON |
|---|---|
| bool, string, null | the same |
| integers | a number; a string beyond 2**53 - 1, because JavaScript rounds these numbers |
| floats | a number; "NaN", "Infinity" or "-Infinity" |
| decimals | a string with all digits |
| dates, times | ISO 8601 strings; timestamps with a time zone are in UTC and end with "Z" |
| durations, intervals | ISO 8601 durations, such as "P1M2DT3.5S" |
| infinite dates and timestamps | "infinity" or "-infinity" |
| binary | base64; UUIDs as their usual string |
| lists | a list |
| structs | an object |
| maps | an object if the keys are strings, else a list of [key, value] pairs |
| unions, dictionaries | the value itself |
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from lance_duck.arrow.types import is_any_list, is_binary, is_text

_EXACT: Final = (1 << 53) - 1
_NANOSECONDS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_ZEROS: Final = re.compile(r"\.0+(?=Z?$)")


def json_values(array: pa.Array) -> list[Any]:
    """Return the values of an array as JSON values: see the module."""
    convert = _converter(array.type)
    if convert is not None:
        return [None if value is None else convert(value) for value in array.to_pylist()]
    return _nested(array)


def _converter(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """Return the function for the Python values of a flat type, or None for other types."""
    if types.is_null(type_) or types.is_boolean(type_) or is_text(type_):
        return _same
    if types.is_integer(type_):
        return _integer if type_.bit_width == 64 else _same
    if types.is_floating(type_):
        return _float if type_.bit_width == 64 else _short_float
    if types.is_decimal(type_):
        return "{:f}".format
    return _base64 if is_binary(type_) else None


def _nested(array: pa.Array) -> list[Any]:
    type_ = array.type
    if isinstance(type_, pa.UuidType):
        return [None if value is None else str(UUID(bytes=value)) for value in array.storage.to_pylist()]
    if isinstance(array, pa.ExtensionArray):
        return json_values(array.storage)
    if types.is_dictionary(type_):
        return json_values(array.dictionary_decode())
    if types.is_run_end_encoded(type_):
        return json_values(pc.run_end_decode(array))
    if types.is_struct(type_):
        return _structs(array)
    if types.is_map(type_):
        return [_map(scalar) if scalar.is_valid else None for scalar in array]
    if is_any_list(type_):
        return [json_values(scalar.values) if scalar.is_valid else None for scalar in array]
    if types.is_union(type_):
        return [None if scalar.as_py() is None else json_values(pa.array([scalar.value]))[0] for scalar in array]
    return _temporal(array)


def _temporal(array: pa.Array) -> list[Any]:
    type_ = array.type
    if types.is_interval(type_):
        return [None if each is None else iso_duration(*each) for each in array.to_pylist()]
    if types.is_duration(type_):
        scale = _NANOSECONDS[type_.unit]
        counts = array.cast(pa.int64()).to_pylist()
        return [None if count is None else iso_duration(0, 0, count * scale) for count in counts]
    if types.is_date64(type_):
        array, type_ = array.cast(pa.date32(), safe=False), pa.date32()
    raw = array.cast(pa.int32() if type_.bit_width == 32 else pa.int64()).to_pylist()
    if types.is_timestamp(type_) and type_.tz:
        array = array.cast(pa.timestamp(type_.unit, "UTC"))
    texts = array.cast(pa.string()).to_pylist()
    largest = (1 << (type_.bit_width - 1)) - 1
    return [text and _moment(text, value, largest) for text, value in zip(texts, raw, strict=True)]


def _moment(text: str, raw: int, largest: int) -> str:
    """Return a date or time. DuckDB stores infinity as the largest integer."""
    if not text.startswith("<"):  # Arrow's mark of values that it cannot print
        return _ZEROS.sub("", text).replace(" ", "T")
    return "infinity" if raw == largest else "-infinity" if raw == -largest else str(raw)


def _structs(array: pa.StructArray) -> list[Any]:
    names = [field.name for field in array.type]
    columns = [json_values(child) for child in array.flatten()]
    rows = zip(*columns, strict=True) if columns else ((),) * len(array)
    valid = array.is_valid().to_pylist()
    return [dict(zip(names, row, strict=True)) if there else None for row, there in zip(rows, valid, strict=True)]


def _map(scalar: pa.MapScalar) -> Any:
    entries = scalar.values
    keys, values = json_values(entries.field(0)), json_values(entries.field(1))
    pairs = zip(keys, values, strict=True)
    return dict(pairs) if is_text(entries.field(0).type) else [list(pair) for pair in pairs]


def iso_duration(months: int, days: int, nanoseconds: int) -> str:
    """Return an ISO 8601 duration, such as "P1M2DT3.5S"."""
    seconds, rest = divmod(abs(nanoseconds), 10**9)
    sign = "-" if nanoseconds < 0 else ""
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    dates = (f"{months}M" if months else "") + (f"{days}D" if days else "")
    times = f"T{sign}{seconds}{fraction}S" if nanoseconds or not dates else ""
    return f"P{dates}{times}"


def _same(value: Any) -> Any:
    return value


def _integer(value: int) -> int | str:
    return value if -_EXACT <= value <= _EXACT else str(value)


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _short_float(value: float) -> float | str:
    """Return a number with as many digits as tell it from other 32-bit floats: 0.1, not 0.10000000149011612."""
    return _float(float(str(np.float32(value))))


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
