"""Converts arrays to their storage types."""

from __future__ import annotations

import pyarrow as pa

from lance_duck.arrow.types import decoded_dictionary, holds_texts, storage_type
from lance_duck.encoding.arrow.blocks import validity_buffer
from lance_duck.encoding.arrow.jsonb_encode import encode_jsonb
from lance_duck.encoding.write.blocks import valid_flags
from lance_duck.errors import InvalidInputError
from lance_duck.wire.schema import Field


def stored_type(field: Field) -> pa.DataType:
    """Return the storage type of a leaf field, without extension types at any depth."""
    return pa.large_binary() if field.is_json else plain_type(field.arrow_type)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without extension types at any depth."""
    kind = storage_type(kind)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if pa.types.is_struct(kind):
        return pa.struct([kind.field(i).with_type(plain_type(kind.field(i).type)) for i in range(kind.num_fields)])
    return kind


def stored_array(array: pa.Array, field: Field, kind: pa.DataType, where: str) -> pa.Array:
    """Convert an array to its storage type, if needed. JSON input is text, or JSONB in binary values.

    Raises:
        InvalidInputError: Values do not fit the type.
    """
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if field.is_json and holds_texts(type_):
        return _jsonb(array, where)
    if pa.types.is_dictionary(type_) and pa.types.is_dictionary(kind):
        return _dictionary(array, kind, where)
    if type_ == kind or _same(plain_type(type_), kind):
        return array
    return _cast(array, kind, where)


def _jsonb(texts: pa.Array, where: str) -> pa.Array:
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        texts = texts.cast(pa.large_string())
    block = encode_jsonb(texts, where)
    bitmap = validity_buffer(valid_flags(texts))
    return pa.Array.from_buffers(
        pa.large_binary(), len(texts), [bitmap, pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
    )


def _same(type_: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether two types have the same buffer layout. Item names are ignored."""
    if pa.types.is_fixed_size_list(type_) and pa.types.is_fixed_size_list(kind):
        return type_.list_size == kind.list_size and _same(type_.value_type, kind.value_type)
    if pa.types.is_struct(type_) and pa.types.is_struct(kind) and type_.num_fields == kind.num_fields:
        pairs = [(type_.field(i), kind.field(i)) for i in range(kind.num_fields)]
        return all(a.name == b.name and _same(a.type, b.type) for a, b in pairs)
    return bool(type_ == kind)


def _dictionary(array: pa.DictionaryArray, kind: pa.DictionaryType, where: str) -> pa.Array:
    """Return a dictionary array without null entries. Drops unused entries if there are more entries than rows."""
    plain = array.type.value_type == kind.value_type and array.type.index_type == kind.index_type
    if plain and not array.dictionary.null_count and len(array.dictionary) <= max(1, len(array)):
        return array
    return _cast(decoded_dictionary(array).dictionary_encode(), kind, where)


def _cast(array: pa.Array, kind: pa.DataType, where: str) -> pa.Array:
    try:
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInputError(
            "values do not fit the column", where=where, expected=kind, found=f"{array.type}: {error}"
        ) from error
