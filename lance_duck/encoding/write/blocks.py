"""Blocks of Arrow arrays: views of the array's buffers if the block has the same form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.types import has_offsets, has_wide_offsets
from lance_duck.encoding.arrow.take import take
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.variable import ascending_within

_NOTHING = np.empty(0, dtype=np.uint8)


def valid_flags(array: pa.Array) -> Bytes | None:
    """Return a flag for each value, 1 if it is not null. Returns None if all values are valid.

    Only the array's own validity counts: a null in a dictionary is not a null of the array.
    """
    if pa.types.is_null(array.type):
        return np.zeros(len(array), dtype=np.uint8) if len(array) else None
    if array.null_count == 0:
        return None
    bits = np.frombuffer(array.buffers()[0], dtype=np.uint8)
    return _unpack(bits, array.offset, len(array))


def array_to_block(array: pa.Array, where: str) -> Block:
    """Return the values of an array of a storage type.

    Null strings become empty, null indices become 0, and other nulls keep their underlying values.

    Args:
        array: An array that is not an extension array, not a variable-size list, and not a view.
        where: Name of the column, for messages.

    Raises:
        UnsupportedError: Columns cannot have this type.
        InvalidInputError: A packed struct has nulls, offsets do not ascend within their bytes, or an index is outside
            the dictionary.
    """
    kind = array.type
    if pa.types.is_null(kind) or kind == pa.binary(0):
        return FixedWidth(0, _NOTHING, len(array))
    if pa.types.is_dictionary(kind):
        return _dictionary(array, where)
    if pa.types.is_fixed_size_list(kind):
        return _fixed_size_list(array, where)
    if pa.types.is_struct(kind):
        return _packed_struct(array, where)
    if pa.types.is_boolean(kind):
        data = array.buffers()[1]
        bits = _NOTHING if data is None else np.frombuffer(data, dtype=np.uint8)
        return FixedWidth(1, _unpack(bits, array.offset, len(array)), len(array))
    if has_offsets(kind):
        return _variable(array, where)
    if not _is_plain(kind):
        raise UnsupportedError("values of this type cannot be encoded", where=where, found=kind)
    return _fixed(array, kind.bit_width)


def _unpack(bits: Bytes, offset: int, count: int) -> Bytes:
    """Return `count` bits from bit `offset`, as bytes."""
    first = offset // 8
    flags = np.unpackbits(bits[first : (offset + count + 7) // 8], bitorder="little")
    return flags[offset - 8 * first :][:count]


def _fixed(array: pa.Array, bits: int) -> FixedWidth:
    width = bits // 8
    data = array.buffers()[1]
    raw = _NOTHING if data is None else np.frombuffer(data, dtype=np.uint8)
    return FixedWidth(bits, raw[array.offset * width : (array.offset + len(array)) * width], len(array))


def _variable(array: pa.Array, where: str) -> VariableWidth:
    large = has_wide_offsets(array.type)
    word: Any = np.int64 if large else np.int32
    if len(array) == 0:
        return VariableWidth(np.zeros(1, dtype=word), _NOTHING)
    _, places, data = array.buffers()
    offsets = np.frombuffer(places, dtype=word)[array.offset : array.offset + len(array) + 1]
    raw = _NOTHING if data is None else np.frombuffer(data, dtype=np.uint8)
    if not ascending_within(readonly(offsets), len(raw)):
        raise InvalidInputError(
            "the offsets of the values are invalid", where=where, expected=f"ascending offsets, at most {len(raw)}"
        )
    return _without_hidden(VariableWidth(offsets, raw), valid_flags(array))


def _without_hidden(block: VariableWidth, valid: Bytes | None) -> VariableWidth:
    """Return the values with nulls replaced by empty values."""
    if valid is None:
        return block
    sizes = np.diff(block.offsets)
    if not sizes[valid == 0].any():
        return block
    is_valid = valid.view(np.bool_)
    visible = take(block, np.flatnonzero(is_valid))
    assert isinstance(visible, VariableWidth)
    offsets = np.zeros(len(sizes) + 1, dtype=block.offsets.dtype)
    np.cumsum(np.where(is_valid, sizes, 0), out=offsets[1:])
    return VariableWidth(offsets, visible.data)


def _dictionary(array: pa.DictionaryArray, where: str) -> Block:
    items = array_to_block(array.dictionary, where)
    indices = array.indices
    width = indices.type.bit_width
    raw = _fixed(indices, width).data
    places: NDArray[Any] = np.ascontiguousarray(raw).view(f"<u{width // 8}")
    valid = valid_flags(indices)
    if valid is not None:
        places = np.where(valid.view(np.bool_), places, places.dtype.type(0))
    if len(places) and int(places.max()) >= items.count and (valid is None or valid.any()):
        raise InvalidInputError(
            "a dictionary index is too high", where=where, expected=f"below {items.count}", found=int(places.max())
        )
    return Dictionary(places, items)


def _fixed_size_list(array: pa.FixedSizeListArray, where: str) -> FixedSizeList:
    size = array.type.list_size
    items = array.values.slice(array.offset * size, len(array) * size)
    while isinstance(items, pa.ExtensionArray):
        items = items.storage
    if size == 0 or not _is_plain(items.type):
        raise UnsupportedError("fixed-size lists of this type cannot be encoded", where=where, found=items.type)
    valid = valid_flags(items)
    if valid is not None:
        outer = valid_flags(array)
        if outer is not None:
            valid = valid | np.repeat(outer ^ 1, size)
        if valid.all():
            valid = None
    return FixedSizeList(size, array_to_block(items, where), valid, len(array))


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether values have a fixed width in memory. This includes fixed-size lists."""
    if pa.types.is_fixed_size_list(kind):
        return True
    if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) or pa.types.is_null(kind):
        return False
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def _packed_struct(array: pa.StructArray, where: str) -> PackedStruct:
    fields = []
    outer = valid_flags(array)
    for i in range(array.type.num_fields):
        field = array.field(i)
        while isinstance(field, pa.ExtensionArray):
            field = field.storage
        if not _is_full(field, outer):
            name = array.type.field(i).name
            raise InvalidInputError(
                "packed structs cannot contain nulls",
                where=f"{where}.{name}",
                remedy="use a plain struct, because packed structs cannot contain nulls",
            )
        if field.type == pa.binary(0):
            raise UnsupportedError("packed structs cannot contain values without bytes", where=where, found=field.type)
        fields.append(array_to_block(field, where))
    return PackedStruct(tuple(fields), len(array))


def _is_full(field: pa.Array, outer: Bytes | None) -> bool:
    """Return whether a member has a value in every struct that is not null."""
    if field.null_count == 0:
        return True
    valid = valid_flags(field)
    return valid is None or (outer is not None and not np.any(outer & ~valid))
