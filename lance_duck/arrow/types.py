"""Kinds of Arrow types. The predicates are false for extension types: check their `storage_type`."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyarrow import types

MAX_INT32: Final = (1 << 31) - 1
"""The maximum offset of string, binary and list, and the maximum size of a fixed_size_list."""


def is_text(type_: pa.DataType) -> bool:
    """Return whether a type is string, large_string or string_view."""
    return bool(types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Return whether a type is binary, large_binary or binary_view, bytes of any length."""
    return bool(types.is_binary(type_) or types.is_large_binary(type_) or types.is_binary_view(type_))


def is_binary(type_: pa.DataType) -> bool:
    """Return whether a type holds bytes, of variable or fixed length."""
    return is_bytes(type_) or bool(types.is_fixed_size_binary(type_))


def is_view(type_: pa.DataType) -> bool:
    """Return whether a type is string_view or binary_view."""
    return bool(types.is_string_view(type_) or types.is_binary_view(type_))


def has_offsets(type_: pa.DataType) -> bool:
    """Return whether a type is string, large_string, binary or large_binary, which store offsets."""
    return bool(types.is_string(type_) or types.is_binary(type_) or has_wide_offsets(type_))


def has_wide_offsets(type_: pa.DataType) -> bool:
    """Return whether a type is large_string or large_binary, with offsets of 64 bits."""
    return bool(types.is_large_string(type_) or types.is_large_binary(type_))


def is_list(type_: pa.DataType) -> bool:
    """Return whether a type is list, large_list or fixed_size_list."""
    return bool(types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_))


def is_any_list(type_: pa.DataType) -> bool:
    """Return whether a type is a list, fixed-size list or list view."""
    return is_list(type_) or bool(types.is_list_view(type_) or types.is_large_list_view(type_))


def is_number(type_: pa.DataType) -> bool:
    """Return whether a type is an integer or float type."""
    return bool(types.is_integer(type_) or types.is_floating(type_))


def is_any_number(type_: pa.DataType) -> bool:
    """Return whether a type is an integer, float or decimal type."""
    return is_number(type_) or bool(types.is_decimal(type_))


def number_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """Return the numpy dtype of an integer or float type. pyarrow's `to_pandas_dtype` would import pandas."""
    kind = "f" if types.is_floating(type_) else "i" if types.is_signed_integer(type_) else "u"
    return np.dtype(f"{kind}{type_.bit_width // 8}")


def is_instant(type_: pa.DataType) -> bool:
    """Return whether a type is timestamp with a time zone."""
    return bool(types.is_timestamp(type_) and type_.tz is not None)


def is_naive(type_: pa.DataType) -> bool:
    """Return whether a type is timestamp without a time zone."""
    return bool(types.is_timestamp(type_) and type_.tz is None)


def holds_texts(type_: pa.DataType) -> bool:
    """Return whether values of a type are strings, or indices into a dictionary of strings."""
    return holds_texts(type_.value_type) if types.is_dictionary(type_) else is_text(type_)


def storage_type(type_: pa.DataType) -> pa.DataType:
    """Return the storage type of an extension type. Other types are returned unchanged."""
    while isinstance(type_, pa.BaseExtensionType):
        type_ = type_.storage_type
    return type_


def with_type(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Convert values of a storage type to its extension type."""
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, with_type(values, type_.storage_type))
    return values


def decoded_dictionary(array: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary array.

    Views become large_string or large_binary, which Arrow's take supports.
    """
    entries = array.dictionary
    if not is_view(entries.type):
        return array.dictionary_decode()
    entries = entries.cast(pa.large_string() if is_text(entries.type) else pa.large_binary())
    return pa.DictionaryArray.from_arrays(array.indices, entries, safe=False).dictionary_decode()
