"""Blocks to Arrow arrays of a storage type, without a copy where the form allows it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.arrow.limits import OVERFLOW, array_limit
from lance_duck.arrow.types import number_dtype
from lance_duck.encoding.arrow.dictionary_decode import dictionary_of_repeats
from lance_duck.encoding.arrow.narrow import Valid, is_rescaled, narrow
from lance_duck.encoding.arrow.take import look_up
from lance_duck.encoding.arrow.texts import looked_up_texts, texts_to_arrow
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.errors import CorruptError


def validity_buffer(valid: Valid) -> pa.Buffer | None:
    """Return the Arrow validity bitmap of flags, one for each slot; None when all slots are valid."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def block_to_arrow(
    block: Block, arrow_type: pa.DataType, valid: Valid, where: str, stored: pa.DataType | None = None
) -> pa.Array:
    """Return the array of a storage type (no extension type) with the values of a block.

    Args:
        block: Values, one for each slot.
        arrow_type: Type of the array: the one that the file stores, or another form of it (string_view, dictionary, a
            narrower decimal or one without a negative scale, float32 for half floats).
        valid: A flag for each slot, or None when all are valid.
        where: Name of the column, for messages.
        stored: Type that the file stores; needed to tell bfloat16 from halffloat, and for negative scales.

    Raises:
        CorruptError: The block does not hold values of this type.
        ArrayLimitError: One array cannot hold so many bytes or dictionary entries.
    """
    if valid is not None and len(valid) != block.count:
        raise CorruptError("flags of nulls", where=where, expected=f"{block.count} of them", found=len(valid))
    if stored is not None and is_rescaled(stored, arrow_type):
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
        return _fixed(narrow(block, stored, arrow_type, where, valid), arrow_type, bitmap, where, stored)
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
    """Return a block of lists, of whose values the encoding tells only the width."""
    size = arrow_type.list_size
    bits = block.bits // size if size else 0
    if not size or bits * size != block.bits or bits % 8:
        raise _mismatch(f"{block.bits} bits", arrow_type, where)
    return FixedSizeList(size, FixedWidth(bits, block.data, block.count * size), None, block.count)


def _dictionary(
    block: Dictionary, arrow_type: pa.DataType, valid: Valid, where: str, stored: pa.DataType | None
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
            indices = np.where(valid, indices, indices[valid.argmax()])  # nulls need no entry
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
        raise CorruptError("dictionary index", where=where, expected=f"< {block.items.count}")
    return block


def _narrow_items(items: Block, arrow_type: pa.DataType, where: str, stored: pa.DataType | None) -> Block:
    """Return the dictionary's items in an Arrow type if all of them fit; values are checked again one by one."""
    if not isinstance(items, FixedWidth):
        return items
    try:
        return narrow(items, stored, arrow_type, where)
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
