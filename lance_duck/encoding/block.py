"""Blocks: decoded values, which codecs read from page buffers and which are then converted to Arrow.

A block only contains value slots. Definition levels (2.1, 2.2) or a validity block (2.0) determine which slots are
null. The content of a null slot is undefined but safe to read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.memory import Bytes


@dataclass(frozen=True, slots=True)
class FixedWidth:
    """`count` values of `bits` bits each.

    Attributes:
        bits: 1, or a multiple of 8. 0 if all values are null and do not have data.
        data: uint8, C-contiguous, little-endian values, count * bits / 8 bytes; if bits == 1, one byte (0 or 1) per
            value.
        count: Number of values.
    """

    bits: int
    data: Bytes
    count: int


@dataclass(frozen=True, slots=True)
class VariableWidth:
    """Variable-length values: value i is data[offsets[i]:offsets[i + 1]].

    Attributes:
        offsets: int32 or int64, count + 1, ascending. The first need not be 0.
        data: uint8.
    """

    offsets: NDArray[np.int32] | NDArray[np.int64]
    data: Bytes

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class Dictionary:
    """Values as indices into `items`.

    Attributes:
        indices: Unsigned integers, each < items.count (checked by the code that builds the block).
        items: The distinct values.
    """

    indices: NDArray[np.unsignedinteger]
    items: Block

    @property
    def count(self) -> int:
        """Number of values."""
        return len(self.indices)


@dataclass(frozen=True, slots=True)
class FixedSizeList:
    """Lists of `dimension` items each, stored one after the other.

    Attributes:
        items: count * dimension values.
        validity: uint8, 0 or 1 for each item, or None if all items are valid.
    """

    dimension: int
    items: Block
    validity: Bytes | None
    count: int


@dataclass(frozen=True, slots=True)
class PackedStruct:
    """Fields of a packed struct, each with `count` values."""

    fields: tuple[Block, ...]
    count: int


Block = FixedWidth | VariableWidth | Dictionary | FixedSizeList | PackedStruct
