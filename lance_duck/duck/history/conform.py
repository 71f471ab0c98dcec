"""Converts values from older versions to the current column type, and compares columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import UnsupportedError


def conformed(values: pa.ChunkedArray, field: pa.Field, where: str) -> pa.ChunkedArray:
    """Return values from an older version in the current column type. Struct members added since then are null.

    Raises:
        UnsupportedError: A value cannot be cast to the current type.
    """
    if values.type == field.type:
        return values
    try:
        return pa.chunked_array([_cast(chunk, field.type) for chunk in values.chunks], field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedError(
            f"older values of column {field.name!r} do not fit its newer type",
            where=where,
            expected=str(field.type),
            found=f"{values.type}: {error}",
            remedy="request the versions before and after the type change separately",
        ) from error


def differing(values: pa.ChunkedArray, others: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a mask of rows in which two columns of the same type differ. NaN equals NaN, and null equals null."""
    if len(values) == 0:
        return np.zeros(0, np.bool_)
    if pa.types.is_nested(values.type) or isinstance(values.type, pa.BaseExtensionType):
        pairs = zip(values.to_pylist(), others.to_pylist(), strict=True)
        return np.array([_is_other(one, other) for one, other in pairs], np.bool_)
    both_null = pc.and_(pc.is_null(values), pc.is_null(others))
    unequal = pc.fill_null(pc.not_equal(values, others), True)
    if pa.types.is_floating(values.type):
        both_nan = pc.fill_null(pc.and_(pc.is_nan(values), pc.is_nan(others)), False)
        unequal = pc.and_not(unequal, both_nan)
    return np.asarray(pc.and_not(unequal, both_null).to_numpy(), np.bool_)


def _cast(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if values.type == type_:
        return values
    if pa.types.is_struct(type_) and pa.types.is_struct(values.type):
        names = [values.type.field(i).name for i in range(values.type.num_fields)]
        members = dict(zip(names, values.flatten(), strict=True))
        fields = [type_.field(i) for i in range(type_.num_fields)]
        arrays = [
            _cast(members[f.name], f.type) if f.name in members else pa.nulls(len(values), f.type) for f in fields
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=pc.is_null(values))
    if pa.types.is_list(type_) and pa.types.is_list(values.type):
        inner = _cast(values.values, type_.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type_, mask=pc.is_null(values))
    return values.cast(type_)


def _is_other(one: Any, other: Any) -> bool:
    """Return whether two Python values differ. NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() != other.keys() or any(_is_other(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) != len(other) or any(map(_is_other, one, other))
    is_nan = isinstance(one, float) and isinstance(other, float) and one != one and other != other
    return bool(one != other) and not is_nan
