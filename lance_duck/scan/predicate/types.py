"""The Arrow types in which predicates compare the values of columns."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.decimals import without_negative_scale
from lance_duck.arrow.types import is_binary, is_instant, is_naive, is_number, is_text, storage_type
from lance_duck.scan.predicate.tree import Path


class InexactError(ValueError):
    """A constant cannot be converted exactly to the type of the column that it is compared with."""


def value_type(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column's values. Extension types become storage types, dictionaries their values."""
    type_ = storage_type(type_)
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def compared_type(type_: pa.DataType) -> pa.DataType:
    """Return the type in which a column's values are compared. Half floats become float32. Negative scales become 0."""
    type_ = value_type(type_)
    if pa.types.is_decimal(type_) and type_.scale < 0:
        return without_negative_scale(type_)
    return pa.float32() if pa.types.is_float16(type_) else type_


def path_type(schema: pa.Schema, path: Path) -> pa.DataType:
    """Return the type of a column or struct field. Raises KeyError if it does not exist."""
    type_ = schema.field(path[0]).type
    for name in path[1:]:
        type_ = storage_type(type_)
        if not pa.types.is_struct(type_) or type_.get_field_index(name) < 0:
            raise KeyError(name)
        type_ = type_.field(name).type
    return type_


def exact(value: Any, type_: pa.DataType) -> Any:
    """Convert a scalar or an array of constants to a type of the same kind. NaN stays NaN.

    Raises:
        InexactError: The type is of a different kind, or cannot represent every value.
    """
    if value.type == type_:
        return value
    if not any(kind(value.type) and kind(type_) for kind in _KINDS):
        raise InexactError(f"the constant {worded(value)} has no equal in {type_}")
    try:
        result = value.cast(type_)
        back = result.cast(value.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InexactError(f"the constant {worded(value)} has no equal in {type_}") from error
    if not back.equals(value) and not _same_numbers(back, value):
        raise InexactError(f"the constant {worded(value)} has no equal in {type_}")
    return result


def worded(value: Any) -> str:
    """Format a constant or query. Times outside Python's range are supported."""
    try:
        return str(value)
    except (OverflowError, ValueError):
        return type(value).__name__


def _same_numbers(first: Any, second: Any) -> bool:
    """Return whether floats are equal. NaN equals NaN. Returns False for other types."""
    arrays = [pa.repeat(each, 1) if isinstance(each, pa.Scalar) else each for each in (first, second)]
    if not pa.types.is_floating(arrays[0].type):
        return False
    same = pc.or_(pc.equal(*arrays), pc.and_(pc.is_nan(arrays[0]), pc.is_nan(arrays[1])))
    return bool(pc.all(same, min_count=0).as_py())


_KINDS: Final = (
    is_number,
    is_text,
    is_binary,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    is_naive,
    is_instant,
)
