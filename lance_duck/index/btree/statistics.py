"""Values as pylance shows them in the statistics of an index."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import number_dtype

_SHOWN_BYTES: Final = 10
_DAY_MS: Final = 86_400_000
_FIRST_YEAR, _LAST_YEAR = -262_143, 262_142  # years that it can show


def value_text(value: pa.Scalar) -> str:
    """Return a value as text.

    Floats have no exponent, the first bytes of binary values are shown as hexadecimal digits, dates as in ISO 8601;
    times, timestamps and durations are shown as they are stored.
    """
    type_ = value.type
    if pa.types.is_decimal(type_):
        number = f"Some({_unscaled(value)})" if value.is_valid else "None"
        return f"{number},{type_.precision},{type_.scale}"
    if not value.is_valid:
        return "NULL"
    if pa.types.is_floating(type_):
        return _float(value)
    if pa.types.is_boolean(type_):
        return "true" if value.as_py() else "false"
    if pa.types.is_date(type_):
        return _date(value.value if pa.types.is_date32(type_) else value.value // _DAY_MS)
    if pa.types.is_temporal(type_):
        return str(value.value)
    plain = value.as_py()
    if isinstance(plain, bytes):
        return plain[:_SHOWN_BYTES].hex().upper() + ("..." if len(plain) > _SHOWN_BYTES else "")
    return str(plain)


def _float(value: pa.Scalar) -> str:
    number = number_dtype(value.type).type(value.as_py())
    if np.isnan(number):
        return "NaN"
    return np.format_float_positional(number, unique=True, trim="-")


def _unscaled(value: pa.Scalar) -> int:
    width = value.type.byte_width
    return int.from_bytes(pa.array([value]).buffers()[1].to_pybytes()[:width], "little", signed=True)


def _date(days: int) -> str:
    day = str(np.datetime64(days, "D"))
    year, month_and_day = int(day[:-6]), day[-6:]
    if not _FIRST_YEAR <= year <= _LAST_YEAR:
        return ""
    return f"{year:+05d}{month_and_day}" if not 0 <= year <= 9999 else f"{year:04d}{month_and_day}"
