"""Converts blocks to Arrow arrays of a storage type, without a copy if the types allow it.

Fixed-width values of some types are converted:

stored                            | returned
decimal128, decimal256            | decimal32, decimal64, decimal128: the low bytes
halffloat                         | float32
fixed_size_binary(2), bfloat16    | float32
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.limits import OVERFLOW, array_limit
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import number_dtype
from lance_duck.encoding.arrow.take import look_up, take
from lance_duck.encoding.arrow.texts import looked_up_texts, texts_to_arrow
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.narrow import low_words
from lance_duck.kernels.texts.dictionary_decode import MOST, ROOM, are_bytes, number_bytes, number_texts
from lance_duck.kernels.texts.variable import ascending_within

_HALF_BITS = 16
_FLOAT_BITS = 32

_Valid = NDArray[np.bool_] | Bytes | None


def validity_buffer(valid: _Valid) -> pa.Buffer | None:
    """Return the Arrow validity bitmap for a flag per slot. Returns None if all slots are valid."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def block_to_arrow(
    block: Block, arrow_type: pa.DataType, valid: _Valid, where: str, stored: pa.DataType | None = None
) -> pa.Array:
    """Return a block as an array of a storage type (without extension types).

    Args:
        block: Values, one for each slot.
        arrow_type: Type of the array: the stored type, or a compatible type (string_view, dictionary, a narrower
            decimal, a decimal without a negative scale, float32 for half floats).
        valid: A flag for each slot, or None if all are valid.
        where: Name of the column, for messages.
        stored: Type in the file. It distinguishes bfloat16 from halffloat, and is needed for negative scales.

    Raises:
        CorruptError: The block does not hold values of this type.
        ArrayLimitError: The bytes or dictionary entries exceed what one array can hold.
    """
    if valid is not None and len(valid) != block.count:
        raise CorruptError(
            "the number of null flags differs from the number of values",
            where=where,
            expected=block.count,
            found=len(valid),
        )
    if stored is not None and _is_rescaled(stored, arrow_type):
        return block_to_arrow(block, stored, valid, where).cast(arrow_type)
    if isinstance(block, Dictionary):
        return _dictionary(block, arrow_type, valid, where, stored)
    if pa.types.is_dictionary(arrow_type):
        dictionary = dictionary_of_repeats(block) if isinstance(block, VariableWidth) else None
        if dictionary is not None:
            return _dictionary(dictionary, arrow_type, valid, where, stored)
        values = block_to_arrow(block, arrow_type.value_type, valid, where, stored)
        try:
            return values.dictionary_encode().cast(arrow_type)
        except OVERFLOW as error:
            raise array_limit(error, where) from error
    bitmap = validity_buffer(valid)
    if isinstance(block, FixedWidth):
        return _fixed(_narrow(block, stored, arrow_type, where, valid), arrow_type, bitmap, where, stored)
    if isinstance(block, VariableWidth):
        return texts_to_arrow(block, arrow_type, bitmap, where)
    if isinstance(block, FixedSizeList):
        return _fixed_size_list(block, arrow_type, bitmap, where, stored)
    return _packed_struct(block, arrow_type, bitmap, where, stored)


def _mismatch(what: str, arrow_type: pa.DataType, where: str) -> CorruptError:
    return CorruptError("values do not fit the type of the column", where=where, expected=arrow_type, found=what)


def _fixed(
    block: FixedWidth, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str, stored: pa.DataType | None
) -> pa.Array:
    if block.bits == 0 and arrow_type != pa.binary(0):
        if block.count and not pa.types.is_null(arrow_type) and (bitmap is None or any(bitmap.to_pybytes())):
            raise _mismatch("values without bytes", arrow_type, where)
        return pa.nulls(block.count, arrow_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return _fixed_size_list(_as_list(block, arrow_type, where), arrow_type, bitmap, where, stored)
    try:
        width = -1 if pa.types.is_nested(arrow_type) else arrow_type.bit_width
    except ValueError:
        width = -1
    if width == 1 and block.bits in (1, 8):
        data = np.packbits(
            block.data if block.bits == 1 else np.bitwise_and(block.data, np.uint8(1)), bitorder="little"
        )
    elif width == block.bits:
        data = block.data
    else:
        raise _mismatch(f"{block.bits} bits", arrow_type, where)
    if 8 * len(data) < block.count * width:
        raise _mismatch(f"{len(data)} bytes for {block.count} values", arrow_type, where)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap, pa.py_buffer(data)])


def _as_list(block: FixedWidth, arrow_type: pa.DataType, where: str) -> FixedSizeList:
    """Return a block as a block of lists. The encoding declares only the width of a list, not of an item."""
    size = arrow_type.list_size
    bits = block.bits // size if size else 0
    if not size or bits * size != block.bits or bits % 8:
        raise _mismatch(f"{block.bits} bits", arrow_type, where)
    return FixedSizeList(size, FixedWidth(bits, block.data, block.count * size), None, block.count)


def _dictionary(
    block: Dictionary, arrow_type: pa.DataType, valid: _Valid, where: str, stored: pa.DataType | None
) -> pa.Array:
    if not pa.types.is_dictionary(arrow_type):
        if isinstance(block.items, VariableWidth):
            checked = _check_indices(block, where)
            return looked_up_texts(block.items, checked, arrow_type, validity_buffer(valid), where)
        values = look_up(Dictionary(block.indices, _narrow_items(block.items, arrow_type, where, stored)))
        return block_to_arrow(values, arrow_type, valid, where, stored)
    items = block_to_arrow(block.items, arrow_type.value_type, None, where, stored)
    index = number_dtype(arrow_type.index_type)
    indices = _check_indices(block, where).indices
    if len(items) - 1 > np.iinfo(index).max:
        if valid is not None:
            indices = np.where(valid, indices, indices[valid.argmax()])  # null slots may refer to any used entry
        entries, indices = np.unique(indices, return_inverse=True)
        if len(entries) - 1 > np.iinfo(index).max:
            raise array_limit(f"{len(entries)} entries of {arrow_type}", where)
        items = items.take(pa.array(entries))
    places = indices.view(index) if indices.itemsize == index.itemsize else indices.astype(index)
    buffers = [validity_buffer(valid), pa.py_buffer(places)]
    keys = pa.Array.from_buffers(arrow_type.index_type, block.count, buffers)
    return pa.DictionaryArray.from_arrays(keys, items, ordered=arrow_type.ordered, safe=False)


def _check_indices(block: Dictionary, where: str) -> Dictionary:
    if block.count and int(block.indices.max()) >= block.items.count:
        raise CorruptError(
            "a dictionary index is too high",
            where=where,
            expected=f"below {block.items.count}",
            found=int(block.indices.max()),
        )
    return block


def _narrow_items(items: Block, arrow_type: pa.DataType, where: str, stored: pa.DataType | None) -> Block:
    """Return the dictionary's items in the layout of an Arrow type if all fit. Otherwise, returns them unchanged."""
    if not isinstance(items, FixedWidth):
        return items
    try:
        return _narrow(items, stored, arrow_type, where)
    except CorruptError:  # an item that only nulls refer to may hold anything
        return items


def _fixed_size_list(
    block: FixedSizeList,
    arrow_type: pa.DataType,
    bitmap: pa.Buffer | None,
    where: str,
    stored: pa.DataType | None,
) -> pa.Array:
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != block.dimension:
        raise _mismatch(f"lists of {block.dimension}", arrow_type, where)
    inner = stored.value_type if stored is not None and pa.types.is_fixed_size_list(stored) else None
    items = block_to_arrow(block.items, arrow_type.value_type, block.validity, where, inner)
    if len(items) != block.count * block.dimension:
        raise _mismatch(f"{len(items)} items for {block.count} lists", arrow_type, where)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap], children=[items])


def _packed_struct(
    block: PackedStruct, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str, stored: pa.DataType | None
) -> pa.Array:
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != len(block.fields):
        raise _mismatch(f"{len(block.fields)} fields", arrow_type, where)
    inner = [None] * len(block.fields) if stored is None else [field.type for field in stored]
    fields = [block_to_arrow(b, arrow_type.field(i).type, None, where, inner[i]) for i, b in enumerate(block.fields)]
    if any(len(field) != block.count for field in fields):
        raise _mismatch(f"fields of other lengths than {block.count}", arrow_type, where)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap], children=fields)


def dictionary_of_repeats(block: VariableWidth) -> Dictionary | None:
    """Dictionary-encode values, in order of first use. Returns None if there are too many distinct values.

    Raises:
        CorruptError: Offsets descend, or point outside the data.
    """
    offsets = block.offsets
    ends, data = readonly(offsets), readonly(block.data)
    if not ascending_within(ends, len(data)):
        raise CorruptError(
            "the offsets of the strings are invalid",
            where="dictionary encoding",
            expected=f"ascending offsets, at most {len(data)}",
        )
    places = unset(block.count, np.uint32)
    firsts = np.empty(MOST, np.int64)
    table = np.full(ROOM, -1, np.int32)
    if int(offsets[-1]) - int(offsets[0]) == block.count and are_bytes(ends):
        count = number_bytes(data, int(offsets[0]), places, firsts, table)
    else:
        count = number_texts(ends, data, places, firsts, table)
    return None if count < 0 else Dictionary(places, take(block, firsts[:count]))


def _narrow(
    block: FixedWidth, stored: pa.DataType | None, type_: pa.DataType, where: str, valid: _Valid = None
) -> FixedWidth:
    """Return values in the layout of `type_`. Values that already have this layout are returned unchanged.

    Args:
        block: Values.
        stored: Type of the values in the file. It distinguishes bfloat16 from halffloat. If None, the width decides.
        type_: Type of the result.
        where: Name of the column, for messages.
        valid: A flag for each value, or None if all are valid. Values of null slots do not have to fit.

    Raises:
        CorruptError: A decimal does not fit.
    """
    if pa.types.is_float32(type_) and block.bits == _HALF_BITS:
        return _widen(block, is_brain=stored is not None and pa.types.is_fixed_size_binary(stored))
    if pa.types.is_decimal(type_) and block.bits > type_.bit_width:
        return _low_bytes(block, type_, where, valid)
    return block


def _is_rescaled(stored: pa.DataType, type_: pa.DataType) -> bool:
    """Return whether decimals with a negative scale change their scale, which requires a cast of each value."""
    both = pa.types.is_decimal(stored) and pa.types.is_decimal(type_)
    return bool(both and stored.scale < 0 and stored != type_)


def _widen(block: FixedWidth, is_brain: bool) -> FixedWidth:
    data = np.ascontiguousarray(block.data[: 2 * block.count])
    if is_brain:
        wide = data.view("<u2").astype("<u4") << np.uint32(_HALF_BITS)
    else:
        wide = data.view("<f2").astype("<f4").view("<u4")
    return FixedWidth(_FLOAT_BITS, wide.view(np.uint8), block.count)


def _low_bytes(block: FixedWidth, type_: pa.DataType, where: str, valid: _Valid) -> FixedWidth:
    if block.bits % 64 or type_.bit_width not in (32, 64, 128):
        raise CorruptError("values do not fit the type of the column", where=where, expected=type_, found=block.bits)
    words = np.ascontiguousarray(block.data[: block.count * block.bits // 8]).view("<i8")
    width = type_.bit_width
    out = unset(block.count * max(width // 64, 1), "<i4" if width == _FLOAT_BITS else "<i8")
    overflows = unset(block.count, np.uint8)
    if low_words(readonly(words), block.bits // 64, out, overflows) and (valid is None or overflows[valid != 0].any()):
        raise CorruptError("decimal has more digits than its type", where=where, expected=type_)
    return FixedWidth(width, out.view(np.uint8), block.count)
