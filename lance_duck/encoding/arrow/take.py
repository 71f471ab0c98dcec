"""Takes rows of a block by position, or slices a range without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.take import gather_fixed, gather_variable, look_up_fixed, select_extents


def take(block: Block, indices: NDArray[np.int64]) -> Block:
    """Return the values at `indices`, in the same order. Indices may repeat.

    Args:
        block: Any block.
        indices: int64 (n,).

    Returns:
        A block of the same kind with n values. It does not share memory with `block`, except for a dictionary's items.

    Raises:
        CorruptError: An index is outside the block, or the block is smaller than its count.
    """
    count = block.count
    if len(indices) and not 0 <= indices.min() <= indices.max() < count:
        raise CorruptError(
            "the row is outside its page",
            where="take",
            expected=f"0 to {count - 1}",
            found=(indices.min(), indices.max()),
        )
    return _take(block, indices)


def look_up(block: Dictionary) -> Block:
    """Return the values of a dictionary block. Raises CorruptError for an index outside the dictionary."""
    items = block.items
    if not isinstance(items, FixedWidth) or not items.bits:
        return take(items, block.indices.astype(np.int64))
    width = _width(items.bits)
    if len(items.data) < items.count * width:
        raise CorruptError(
            "the block is too short for its value count", where="dictionary", found=f"{len(items.data)} bytes"
        )
    out = unset(block.count * width, np.uint8)
    are_inside = look_up_fixed(readonly(items.data), items.count, width, readonly(block.indices), out)
    check_status(are_inside, "dictionary", "row")
    return FixedWidth(items.bits, out, block.count)


def slice_block(block: Block, start: int, stop: int) -> Block:
    """Return the values from `start` to `stop` as views. Raises CorruptError if the block is shorter."""
    count = block.count
    if not 0 <= start <= stop <= count:
        raise CorruptError(
            "the rows are outside their page", where="slice", expected=f"0 to {count}", found=(start, stop)
        )
    return _slice(block, start, stop)


def _take(block: Block, indices: NDArray[np.int64]) -> Block:
    match block:
        case FixedWidth(bits, data):
            return FixedWidth(bits, _take_bytes(data, _width(bits), indices), len(indices))
        case VariableWidth():
            return _take_variable(block, indices)
        case Dictionary(places, items):
            return Dictionary(places[indices], items)
        case FixedSizeList(dimension, items, validity):
            validity_bits = None if validity is None else _take_bytes(validity, dimension, indices)
            return FixedSizeList(dimension, _take_items(items, dimension, indices), validity_bits, len(indices))
        case PackedStruct(fields):
            return PackedStruct(tuple(take(field, indices) for field in fields), len(indices))


def _take_bytes(data: Bytes, width: int, indices: NDArray[np.int64]) -> Bytes:
    if len(indices) and len(data) < (int(indices.max()) + 1) * width:
        raise CorruptError("the block is too short for its value count", where="take", found=f"{len(data)} bytes")
    out = unset(len(indices) * width, np.uint8)
    gather_fixed(readonly(data), indices * width, width, out)
    return out


def _take_items(items: Block, dimension: int, indices: NDArray[np.int64]) -> Block:
    """Return the items of the lists at `indices`. Lists of fixed-width items are copied as a whole."""
    if isinstance(items, FixedWidth):
        data = _take_bytes(items.data, _width(items.bits) * dimension, indices)
        return FixedWidth(items.bits, data, len(indices) * dimension)
    return take(items, (indices[:, None] * dimension + np.arange(dimension)).reshape(-1))


def _take_variable(block: VariableWidth, indices: NDArray[np.int64]) -> VariableWidth:
    starts = unset(len(indices), np.int64)
    ends = unset(len(indices) + 1, np.int64)
    check_status(select_extents(readonly(block.offsets), indices, len(block.data), starts, ends), "variable", "row")
    total = int(ends[-1])
    offsets: NDArray[Any] = ends.astype(np.int32) if total <= MAX_INT32 else ends
    out = unset(total, np.uint8)
    gather_variable(readonly(block.data), starts, offsets, out)
    return VariableWidth(offsets, out)


def _slice(block: Block, start: int, stop: int) -> Block:
    match block:
        case FixedWidth(bits, data):
            width = _width(bits)
            return FixedWidth(bits, data[start * width : stop * width], stop - start)
        case VariableWidth(offsets, data):
            return VariableWidth(offsets[start : stop + 1], data)
        case Dictionary(places, items):
            return Dictionary(places[start:stop], items)
        case FixedSizeList(dimension, items, validity):
            first, last = start * dimension, stop * dimension
            validity_bits = None if validity is None else validity[first:last]
            return FixedSizeList(dimension, slice_block(items, first, last), validity_bits, stop - start)
        case PackedStruct(fields):
            return PackedStruct(tuple(slice_block(field, start, stop) for field in fields), stop - start)


def _width(bits: int) -> int:
    """Return the number of bytes of a value."""
    return 1 if bits == 1 else bits // 8
