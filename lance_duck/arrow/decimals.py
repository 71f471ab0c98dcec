"""Converts Arrow decimal types to DuckDB's, which have at most 38 digits and a scale between 0 and the digit count."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.arrow.types import storage_type

MOST_DIGITS: Final = 38
"""Maximum digit count of a decimal in DuckDB."""
_MOST_ARROW_DIGITS: Final = 76


def sql_decimal(type_: pa.DataType) -> pa.DataType:
    """Return the DuckDB decimal type that holds all values of an Arrow decimal type, unless `is_wide`.

    The result is decimal32 for up to 9 digits and decimal64 for up to 18. A type with a negative scale becomes
    decimal128, because its values will be multiplied.
    """
    digits, scale = min(_digits(type_), MOST_DIGITS), min(max(type_.scale, 0), MOST_DIGITS)
    if digits <= 9 and type_.scale >= 0:
        return pa.decimal32(digits, scale)
    return pa.decimal64(digits, scale) if digits <= 18 and type_.scale >= 0 else pa.decimal128(digits, scale)


def is_wide(type_: pa.DataType) -> bool:
    """Return whether an Arrow decimal type has more digits than DuckDB supports."""
    return _digits(type_) > MOST_DIGITS


def _digits(type_: pa.DataType) -> int:
    """Return the digit count of a type that holds all values of `type_` and has a scale from 0 to that count."""
    return int(max(type_.precision - min(type_.scale, 0), type_.scale))


def without_negative_scale(type_: pa.DataType) -> pa.DataType:
    """Return the decimal type with scale 0 and at most 76 digits that replaces a type with a negative scale."""
    digits = min(type_.precision - type_.scale, _MOST_ARROW_DIGITS)
    return pa.decimal128(digits, 0) if digits <= MOST_DIGITS else pa.decimal256(digits, 0)


def wide_decimal(type_: pa.DataType) -> pa.DataType | None:
    """Return the first wide decimal type in a type, at any depth, or None. See `is_wide`."""
    type_ = storage_type(type_)
    if pa.types.is_decimal(type_):
        return type_ if is_wide(type_) else None
    if pa.types.is_dictionary(type_):
        return wide_decimal(type_.value_type)
    if not pa.types.is_nested(type_):
        return None
    found = (wide_decimal(type_.field(place).type) for place in range(type_.num_fields))
    return next((wide for wide in found if wide is not None), None)
