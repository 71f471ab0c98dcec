"""Casts of non-nested types. They never change a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.limits import OVERFLOW, array_limit, check_limit
from lance_duck.arrow.types import decoded_dictionary, has_wide_offsets, is_bytes, is_text
from lance_duck.errors import ArrayLimitError, DataMismatchError, InvalidInputError
from lance_duck.wire.schema import Field

_MOST_DIGITS: Final = 76
_INTEGER_DIGITS: Final = 20

Cast = Callable[[pa.Array], pa.Array]


def fits(source: pa.DataType, target: pa.DataType) -> bool:
    """Return whether values of the source type may be cast to the target type without changes."""
    if is_text(source):
        return is_text(target)
    if is_bytes(source) or pa.types.is_fixed_size_binary(source):
        return is_bytes(target) or bool(pa.types.is_fixed_size_binary(target))
    if pa.types.is_integer(source):
        return any((pa.types.is_integer(target), pa.types.is_floating(target), pa.types.is_decimal(target)))
    if pa.types.is_floating(source):
        return bool(pa.types.is_integer(target) or pa.types.is_floating(target))
    if pa.types.is_timestamp(source):
        return bool(pa.types.is_timestamp(target) and (source.tz is None) == (target.tz is None))
    if pa.types.is_decimal(source) and pa.types.is_integer(target):
        return True
    families = (pa.types.is_decimal, pa.types.is_date, pa.types.is_time, pa.types.is_duration)
    return any(family(source) and family(target) for family in families)


def cast_values(array: pa.Array, target: pa.DataType, where: str) -> pa.Array:
    """Cast values one by one.

    Raises:
        InvalidInputError: A value would change. The message names the first such row.
    """
    try:
        cast = check_limit(_cast(array, target))
    except pa.ArrowException as error:
        row = _first_failing(array, target)
        if _casts(array.slice(row, 1), target):  # each value fits, but one array cannot hold all of them
            raise array_limit(error, where) from error
        raise InvalidInputError(
            "the value does not fit the column", where=f"{where}, row {row}", expected=target, found=array[row]
        ) from error
    if pa.types.is_floating(array.type) and _narrows(array.type, target):
        back = cast.cast(array.type)
        same = pc.or_kleene(pc.equal(back, array), pc.is_nan(array)).fill_null(True)
        if not pc.all(same, min_count=0).as_py():
            row = pc.index(same, False).as_py()
            raise InvalidInputError(
                "the value would be rounded",
                where=f"{where}, row {row}",
                expected=target,
                found=array[row],
                remedy="cast the data before writing",
            )
    return cast


def decoded_values(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary array.

    Raises:
        ArrayLimitError: One array cannot hold all the values.
    """
    try:
        return check_limit(decoded_dictionary(array))
    except OVERFLOW as error:
        raise array_limit(error) from error


def dictionary_cast(source: pa.DataType, target: pa.DictionaryType, where: str) -> Cast:
    """Return the cast from plain values, or from a different dictionary type, to a dictionary type."""
    values = source.value_type if pa.types.is_dictionary(source) else source
    if values != target.value_type and not fits(values, target.value_type):
        raise mismatch(source, target, where)

    def cast(array: pa.Array) -> pa.Array:
        plain = decoded_values(array) if pa.types.is_dictionary(array.type) else array
        if plain.type != target.value_type:
            plain = cast_values(plain, target.value_type, where)
        encoded = plain.dictionary_encode()
        try:
            indices = encoded.indices.cast(target.index_type)
        except pa.ArrowException as error:
            raise ArrayLimitError(
                "the dictionary has more values than its index type can address",
                where=where,
                expected=target,
                found=len(encoded.dictionary),
                remedy="cast the column to string, or to a dictionary with wider indices",
            ) from error
        return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=target.ordered)

    return cast


def blob_cast(source: pa.DataType, field: Field, where: str) -> Cast:
    """Return the cast of bytes to blobs that contain these bytes."""
    target = field.storage_type
    if not (is_bytes(source) or is_text(source)):
        raise mismatch(source, target, where)

    def cast(array: pa.Array) -> pa.Array:
        data = array.cast(pa.large_binary())
        members = {"data": data}
        columns = [members.get(child.name, pa.nulls(len(array), child.storage_type)) for child in field.children]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=mask)

    return cast


def mismatch(source: pa.DataType, target: pa.DataType, where: str) -> DataMismatchError:
    """Return the error for a type that cannot be cast to the target type."""
    return DataMismatchError(
        "the data has the wrong type", where=where, expected=target, found=source, remedy="cast the data before writing"
    )


def with_row(error: InvalidInputError, change: Callable[[int], int]) -> InvalidInputError:
    """Return the error with a changed row number."""
    where, separator, row = str(error.where or "").rpartition(", row ")
    if not separator or not row.isdigit():
        return error
    return type(error)(
        error.what,
        where=f"{where}, row {change(int(row))}",
        expected=error.expected,
        found=error.found,
        remedy=error.remedy,
    )


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_integer(array.type) and pa.types.is_decimal(target):
        array = array.cast(pa.decimal256(_MOST_DIGITS, max(0, min(target.scale, _MOST_DIGITS - _INTEGER_DIGITS))))
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        if not has_wide_offsets(array.type) or not array.offset:
            raise
        return pa.concat_arrays([array]).cast(target)  # without the copy, Arrow also counts the bytes before a slice


def _first_failing(array: pa.Array, target: pa.DataType) -> int:
    start, stop = 0, len(array)
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            _cast(array.slice(start, middle - start), target)
            start = middle
        except pa.ArrowException:
            stop = middle
    return start


def _casts(array: pa.Array, target: pa.DataType) -> bool:
    try:
        _cast(array, target)
    except pa.ArrowException:
        return False
    return True


def _narrows(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(pa.types.is_floating(target) and target.bit_width < source.bit_width)
