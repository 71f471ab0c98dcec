"""Converts values from older versions to the current column type."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
