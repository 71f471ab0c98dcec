"""Checks that arrays hold no nulls where Spark was told that there are none.

Spark reads what it takes for never null without looking, so that a null would become some value.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_duck.arrow.types import is_list, storage_type
from lance_duck.errors import InvalidInputError


def promises_more(found: pa.DataType, declared: pa.DataType) -> bool:
    """Return whether a declared type rules out nulls, below its top level, that arrays of the found type may hold."""
    by_name = {field.name: field for field in _fields(storage_type(found))} if pa.types.is_struct(declared) else None
    inside = list(_fields(storage_type(found)))
    for place, field in enumerate(_fields(declared)):
        inner = inside[place] if by_name is None and place < len(inside) else (by_name or {}).get(field.name)
        is_sure = inner is not None and not inner.nullable
        if not (field.nullable or is_sure) or promises_more(pa.null() if inner is None else inner.type, field.type):
            return True
    return False


def refuse_nulls(array: pa.Array, where: str) -> None:
    """Check an array of a declared type at all depths below the top. Nulls below a null of an outer level count not.

    Raises:
        InvalidInputError: A null where the type rules it out.
    """
    kind = array.type
    if pa.types.is_struct(kind):
        valid = array.filter(array.is_valid()) if array.null_count else array
        inner = [valid.field(place) for place in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        valid = array.filter(array.is_valid()) if array.null_count else array
        start, stop = (valid.offsets[0].as_py(), valid.offsets[-1].as_py()) if len(valid) else (0, 0)
        inner = [part.slice(start, stop - start) for part in (valid.keys, valid.items)]
    elif pa.types.is_list(kind):
        inner = [array.values]
        if array.values.null_count or pa.types.is_nested(kind.value_type):
            inner = [array.flatten()]  # without the items of null lists, and those before and after a slice
    else:
        return
    for field, values in zip(_fields(kind), inner, strict=True):
        if not field.nullable and values.null_count:
            raise InvalidInputError(
                "a null where the schema that was declared to Spark has none",
                where=f"column {where}.{field.name}",
                found=f"{values.null_count} of {len(values)}",
                remedy="leave out contains_null=False, or containsNull = false of the schema",
            )
        refuse_nulls(values, f"{where}.{field.name}")


def _fields(kind: pa.DataType) -> Iterator[pa.Field]:
    if pa.types.is_map(kind):
        yield from (kind.key_field, kind.item_field)
    elif pa.types.is_struct(kind):
        yield from kind
    elif is_list(kind):
        yield kind.value_field
