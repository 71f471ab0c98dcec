"""Checks arrays for nulls in non-nullable fields."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.listed import offsets_of
from lance_duck.errors import DataMismatchError
from lance_duck.wire.schema import Field
from lance_duck.wire.schema_write import is_primary_key


def check_nulls(array: pa.Array, field: Field) -> None:
    """Check that an array does not have nulls that its field forbids, at any depth.

    The array is in the field's storage type. Values below a null are absent and do not count as null.

    Raises:
        DataMismatchError: A forbidden null was found. The message names the column and the row.
    """
    problem = _find(array, field, f"column {field.name!r}")
    if problem is not None:
        where, row = problem
        has_key = any(is_primary_key(each) for each in field.walk())
        expected = "a value in each row of a primary key column" if has_key else None
        raise DataMismatchError("a non-nullable column contains a null", where=f"{where}, row {row}", expected=expected)


def _find(array: pa.Array, field: Field, where: str) -> tuple[str, int] | None:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if not field.nullable and array.null_count:
        return where, pc.index(array.is_null(), True).as_py()
    if not _has_strict_fields(field):
        return None
    if pa.types.is_struct(array.type):
        return _in_struct(array, field, where)
    if pa.types.is_map(array.type):
        array = _as_lists(array)
    return _in_lists(array, field.children[0], where)


def _has_strict_fields(field: Field) -> bool:
    return any(not f.nullable for f in field.walk() if f is not field)


def _in_struct(array: pa.Array, field: Field, where: str) -> tuple[str, int] | None:
    rows = pc.indices_nonzero(array.is_valid()) if array.null_count else None
    for i, child in enumerate(field.children):
        column = array.field(i)
        problem = _find(column if rows is None else column.take(rows), child, f"{where}.{child.name}")
        if problem is not None:
            return problem[0], problem[1] if rows is None else rows[problem[1]].as_py()
    return None


def _as_lists(array: pa.MapArray) -> pa.ListArray:
    """Return a map as lists of entries. Arrow's cast rejects null structs that have a required field."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets_of(array), pa.int32()), entries, mask=mask)


def _in_lists(array: pa.Array, item: Field, where: str) -> tuple[str, int] | None:
    problem = _find(array.flatten(), item, f"{where}.{item.name}")
    if problem is None:
        return None
    return problem[0], pc.list_parent_indices(array)[problem[1]].as_py()
