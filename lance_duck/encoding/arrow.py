"""Blocks to Arrow arrays of the storage type, without a copy where the form allows it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Bytes, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.take import take
from lance_duck.errors import CorruptError, InvalidInputError

_MAX_OFFSET = np.iinfo(np.int32).max


def validity_buffer(valid: NDArray[np.bool_] | Bytes | None) -> pa.Buffer | None:
    """Arrow validity bitmap of one flag a slot; None when all are valid."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))


def block_to_arrow(
    block: Block, arrow_type: pa.DataType, valid: NDArray[np.bool_] | Bytes | None, where: str
) -> pa.Array:
    """Array of a storage type (no extension type) with the values of a block.

    Args:
        block: Values, one a slot.
        arrow_type: What to make of them.
        valid: One flag a slot, or None when all are valid.
        where: Column, for messages.

    Raises:
        CorruptError: The block does not hold values of this type.
        InvalidInputError: More bytes than 32-bit offsets can address.
    """
    if isinstance(block, Dictionary):
        return _dictionary(block, arrow_type, valid, where)
    bitmap = validity_buffer(valid)
    if isinstance(block, FixedWidth):
        return _fixed(block, arrow_type, bitmap, where)
    if isinstance(block, VariableWidth):
        return _variable(block, arrow_type, bitmap, where)
    if isinstance(block, FixedSizeList):
        return _fixed_size_list(block, arrow_type, bitmap, where)
    return _packed_struct(block, arrow_type, bitmap, where)


def _mismatch(what: str, arrow_type: pa.DataType, where: str) -> CorruptError:
    return CorruptError("values do not fit the type of the column", where=where, expected=arrow_type, found=what)


def _fixed(block: FixedWidth, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    if block.bits == 0:
        return pa.nulls(block.count, arrow_type)
    if pa.types.is_fixed_size_list(arrow_type):
        return _fixed_size_list(_as_list(block, arrow_type, where), arrow_type, bitmap, where)
    if pa.types.is_dictionary(arrow_type):
        return _encode(_fixed(block, arrow_type.value_type, bitmap, where), arrow_type)
    try:
        width = arrow_type.bit_width
    except ValueError:
        raise _mismatch(f"{block.bits} bits", arrow_type, where) from None
    if width == 1 and block.bits == 8:
        block = FixedWidth(1, np.bitwise_and(block.data, np.uint8(1)), block.count)
    if width != block.bits or pa.types.is_nested(arrow_type):
        raise _mismatch(f"{block.bits} bits", arrow_type, where)
    data = np.packbits(block.data, bitorder="little") if block.bits == 1 else block.data
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap, pa.py_buffer(data)])


def _as_list(block: FixedWidth, arrow_type: pa.DataType, where: str) -> FixedSizeList:
    """Items of lists whose encoding says no more than their width."""
    size = arrow_type.list_size
    bits = block.bits // size if size else 0
    if not size or bits * size != block.bits or bits % 8:
        raise _mismatch(f"{block.bits} bits", arrow_type, where)
    return FixedSizeList(size, FixedWidth(bits, block.data, block.count * size), None, block.count)


def _variable(block: VariableWidth, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    if pa.types.is_dictionary(arrow_type):
        return _encode(_variable(block, arrow_type.value_type, bitmap, where), arrow_type)
    small = pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type)
    if not small and not pa.types.is_large_string(arrow_type) and not pa.types.is_large_binary(arrow_type):
        raise _mismatch("values of any length", arrow_type, where)
    offsets = block.offsets
    if len(offsets) == 0 or offsets[0] < 0 or offsets[-1] > len(block.data):
        raise CorruptError("offsets", where=where, expected=f"within {len(block.data)} bytes")
    if small and int(offsets[-1]) > _MAX_OFFSET:
        raise InvalidInputError(
            "too many bytes for 32-bit offsets", where=where, found=int(offsets[-1]), remedy="read fewer rows at once"
        )
    offsets = offsets.astype(np.int32, copy=False) if small else offsets.astype(np.int64, copy=False)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap, pa.py_buffer(offsets), pa.py_buffer(block.data)])


def _dictionary(
    block: Dictionary, arrow_type: pa.DataType, valid: NDArray[np.bool_] | Bytes | None, where: str
) -> pa.Array:
    if not pa.types.is_dictionary(arrow_type):
        return block_to_arrow(take(block.items, block.indices.astype(np.int64)), arrow_type, valid, where)
    items = block_to_arrow(block.items, arrow_type.value_type, None, where)
    index = arrow_type.index_type.to_pandas_dtype()
    if block.items.count > np.iinfo(index).max:
        raise InvalidInputError("dictionary is too large for its index type", where=where, found=block.items.count)
    bitmap = validity_buffer(valid)
    indices = pa.Array.from_buffers(
        arrow_type.index_type, block.count, [bitmap, pa.py_buffer(block.indices.astype(index, copy=False))]
    )
    return pa.DictionaryArray.from_arrays(indices, items)


def _encode(values: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    return values.dictionary_encode().cast(arrow_type)


def _fixed_size_list(block: FixedSizeList, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    if not pa.types.is_fixed_size_list(arrow_type) or arrow_type.list_size != block.dimension:
        raise _mismatch(f"lists of {block.dimension}", arrow_type, where)
    items = block_to_arrow(block.items, arrow_type.value_type, block.validity, where)
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap], children=[items])


def _packed_struct(block: PackedStruct, arrow_type: pa.DataType, bitmap: pa.Buffer | None, where: str) -> pa.Array:
    if not pa.types.is_struct(arrow_type) or arrow_type.num_fields != len(block.fields):
        raise _mismatch(f"{len(block.fields)} fields", arrow_type, where)
    fields = [block_to_arrow(b, arrow_type.field(i).type, None, where) for i, b in enumerate(block.fields)]
    return pa.Array.from_buffers(arrow_type, block.count, [bitmap], children=fields)
