"""Choosing values of a block."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth


def slice_block(block: Block, start: int, stop: int) -> Block:
    """Values start to stop, without a copy; 0 <= start <= stop <= block.count."""
    count = stop - start
    if count == block.count:
        return block
    if isinstance(block, FixedWidth):
        width = max(block.bits // 8, 1)
        return FixedWidth(block.bits, block.data[start * width : stop * width], count)
    if isinstance(block, VariableWidth):
        return VariableWidth(block.offsets[start : stop + 1], block.data)
    if isinstance(block, Dictionary):
        return Dictionary(block.indices[start:stop], block.items)
    if isinstance(block, FixedSizeList):
        first, last = start * block.dimension, stop * block.dimension
        validity = None if block.validity is None else block.validity[first:last]
        return FixedSizeList(block.dimension, slice_block(block.items, first, last), validity, count)
    return PackedStruct(tuple(slice_block(field, start, stop) for field in block.fields), count)


def take(block: Block, indices: NDArray[np.int64]) -> Block:
    """The values at `indices`, each within the block."""
    count = len(indices)
    if isinstance(block, FixedWidth):
        width = max(block.bits // 8, 1)
        data = block.data[: block.count * width].reshape(block.count, width)[indices].reshape(-1)
        return FixedWidth(block.bits, data, count)
    if isinstance(block, VariableWidth):
        return _take_variable(block, indices)
    if isinstance(block, Dictionary):
        return Dictionary(block.indices[indices], block.items)
    if isinstance(block, FixedSizeList):
        inner = (indices[:, None] * block.dimension + np.arange(block.dimension)).reshape(-1)
        validity = None if block.validity is None else block.validity[inner]
        return FixedSizeList(block.dimension, take(block.items, inner), validity, count)
    return PackedStruct(tuple(take(field, indices) for field in block.fields), count)


def _take_variable(block: VariableWidth, indices: NDArray[np.int64]) -> VariableWidth:
    begin = block.offsets[indices].astype(np.int64)
    sizes = block.offsets[indices + 1] - begin
    offsets = np.zeros(len(indices) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(begin - offsets[:-1], sizes)
    return VariableWidth(offsets, block.data[places])
