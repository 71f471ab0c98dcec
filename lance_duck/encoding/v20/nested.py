"""Fixed-size lists and packed structs in one page.

fixed_size_list    the items of all lists, one after the other
packed_struct      rows of fields back to back, little-endian, without padding

Lists and structs themselves cannot be null. The items of a list may be nullable arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lance_duck.encoding.block import Block, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.v20.array import EncodedArray, PageValues
from lance_duck.encoding.v20.buffers import StoredBuffer
from lance_duck.encoding.v20.flat import FlatBytes
from lance_duck.encoding.v20.runs import RowRuns
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.store.request import Request


@dataclass(frozen=True, slots=True)
class FixedSizeListArray:
    """Lists of `dimension` items each.

    Attributes:
        item_type: Arrow type of the items, for null slots without stored bytes.
    """

    items: EncodedArray
    dimension: int
    item_type: pa.DataType

    @property
    def capacity(self) -> int | None:
        """Number of lists whose items the bytes can hold."""
        return None if self.items.capacity is None else self.items.capacity // self.dimension

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return FixedSizeList values."""
        items = yield from self.items.read(runs.scaled(self.dimension))
        count = runs.count
        if items.block is None:
            zeros = zero_block(self.item_type, items.count)
            nulls = np.zeros(items.count, np.uint8)
            return PageValues(FixedSizeList(self.dimension, zeros, nulls, count), None, count)
        return PageValues(FixedSizeList(self.dimension, items.block, items.validity, count), None, count)


@dataclass(frozen=True, slots=True)
class PackedArrayField:
    """A field of a packed struct: a value of `bits` bits, or `dimension` values if it is a fixed-size list."""

    bits: int
    dimension: int | None = None

    @property
    def size(self) -> int:
        """Number of bytes in a row."""
        return self.bits // 8 * (1 if self.dimension is None else self.dimension)

    def block(self, data: Bytes, count: int) -> Block:
        """Return the values of the field in `count` rows."""
        if self.dimension is None:
            return FixedWidth(self.bits, data, count)
        items = FixedWidth(self.bits, data, count * self.dimension)
        return FixedSizeList(self.dimension, items, None, count)


@dataclass(frozen=True, slots=True)
class PackedStructArray:
    """Rows of fixed-width fields."""

    fields: tuple[PackedArrayField, ...]
    buffer: StoredBuffer

    @property
    def row_size(self) -> int:
        """Number of bytes in a row, at least 1."""
        return sum(field.size for field in self.fields)

    @property
    def capacity(self) -> int:
        """Number of rows in the buffer."""
        return self.buffer.size // self.row_size

    def read(self, runs: RowRuns) -> Request[PageValues]:
        """Return PackedStruct values."""
        rows = yield from FlatBytes(self.buffer, self.row_size * 8).read(runs)
        if not isinstance(rows.block, FixedWidth):
            raise CorruptError("the rows of a packed struct are not fixed-width", where=self.buffer.where)
        table = rows.block.data.reshape(rows.count, self.row_size)
        blocks: list[Block] = []
        at = 0
        for field in self.fields:
            column = np.ascontiguousarray(table[:, at : at + field.size]).reshape(-1)
            blocks.append(field.block(column, rows.count))
            at += field.size
        return PageValues(PackedStruct(tuple(blocks), rows.count), None, rows.count)


def zero_block(arrow_type: pa.DataType, count: int) -> Block:
    """Return a block of `count` value slots that are all null.

    Raises:
        UnsupportedError: Fixed-size lists do not support values of this type.
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return zero_block(arrow_type.storage_type, count)
    if pa.types.is_boolean(arrow_type):
        return FixedWidth(1, np.zeros(count, np.uint8), count)
    if pa.types.is_fixed_size_list(arrow_type):
        dimension = arrow_type.list_size
        return FixedSizeList(dimension, zero_block(arrow_type.value_type, count * dimension), None, count)
    if arrow_type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return VariableWidth(np.zeros(count + 1, np.int32), np.empty(0, np.uint8))
    try:
        bits = arrow_type.bit_width
    except ValueError:
        raise UnsupportedError("null items of this type are not supported", found=arrow_type) from None
    return FixedWidth(bits, np.zeros(count * bits // 8, np.uint8), count)
