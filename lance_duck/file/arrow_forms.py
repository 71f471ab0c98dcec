"""Forms of a leaf: Arrow types that it can be read as, other than the type that it is stored as.

A pure rule, tested alone.

stored                                  | forms
string, large_string, string_view      | one another
binary, large_binary, binary_view      | one another
JSON, as text                           | those of string; binary, large_binary: as stored
blob description of 2.1                 | binary, large_binary: its bytes
decimal128, decimal256                  | decimals of as many bits or fewer; of no scale if theirs is negative
halffloat, fixed_size_binary(2)         | float32
all of these, and any other             | dictionary(index, form)
fixed_size_list(item)                   | fixed_size_list(form of the item)
"""

from __future__ import annotations

import pyarrow as pa

from lance_duck.arrow.types import is_bytes, is_text
from lance_duck.errors import InvalidInputError
from lance_duck.wire.schema import Field


def check_form(field: Field, stored: pa.DataType, target: pa.DataType) -> None:
    """Check that a leaf can be read as `target`; both types are storage types.

    Raises:
        InvalidInputError: The leaf has no such form.
    """
    if not (stored == target or _has_form(field, stored, target)):
        raise InvalidInputError(
            "column cannot be read as this type", where=f"column {field.name}", expected=f"{stored}", found=target
        )


def _has_form(field: Field, stored: pa.DataType, target: pa.DataType) -> bool:
    if stored == target:
        return True
    if pa.types.is_dictionary(target):
        inner = stored.value_type if pa.types.is_dictionary(stored) else stored
        return _has_form(field, inner, target.value_type)
    if pa.types.is_dictionary(stored):
        return _has_form(field, stored.value_type, target)
    if pa.types.is_fixed_size_list(stored) and pa.types.is_fixed_size_list(target):
        return stored.list_size == target.list_size and _has_form(field, stored.value_type, target.value_type)
    if is_bytes(target):
        return is_bytes(stored) or field.is_json or field.blob_version == 1
    if is_text(target):
        return is_text(stored)
    if pa.types.is_decimal(target):
        same_scale = pa.types.is_decimal(stored) and max(stored.scale, 0) == target.scale
        return bool(same_scale and target.bit_width <= stored.bit_width)
    if pa.types.is_float32(target):
        is_brain = pa.types.is_fixed_size_binary(stored) and stored.byte_width == 2
        return bool(pa.types.is_float16(stored)) or bool(is_brain)
    return False
