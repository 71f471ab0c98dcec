"""Blob layout (2.1): values lie elsewhere in the file, and the page has a description of each.

A description is a packed struct (u64 position, u64 size), the position absolute in the file:

    position | size | meaning
    0        | 0    | an empty value
    any      | > 0  | a value
    > 0      | 0    | no value: position is (def << 16) | rep
"""

from __future__ import annotations

import numpy as np

from lance_duck.encoding.block import FixedWidth, PackedStruct
from lance_duck.encoding.layers import Layers
from lance_duck.encoding.page import Leaf, Page, PageReader, Rows
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import Request


class BlobReader:
    """Reads the descriptions of a blob page: blocks are packed structs (position, size)."""

    def __init__(self, page: Page, inner: PageReader, layers: Layers) -> None:
        if not layers.is_flat:
            raise UnsupportedError("blobs inside of lists or structs", where=page.where)
        self._page = page
        self._inner = inner
        self._layers = layers

    @property
    def num_rows(self) -> int:
        """Rows of the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """False."""
        return False

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read the descriptions of rows; that of a null is (0, 0)."""
        leaf = yield from self._inner.read(rows)
        block = leaf.block
        if not isinstance(block, PackedStruct) or len(block.fields) != 2:
            raise CorruptError("blob page", where=self._page.where, expected="descriptions of position and size")
        position, size = block.fields
        if (
            not isinstance(position, FixedWidth)
            or not isinstance(size, FixedWidth)
            or {position.bits, size.bits} != {64}
        ):
            raise CorruptError("blob page", where=self._page.where, expected="positions and sizes of 64 bits")
        positions = np.ascontiguousarray(position.data).view("<u8")
        missing = (np.ascontiguousarray(size.data).view("<u8") == 0) & (positions != 0)
        if not missing.any():
            return Leaf(block, None, None, self._layers, leaf.num_slots, leaf.num_rows)
        levels = positions[missing] >> np.uint64(16)
        if int(levels.max()) > self._layers.max_def:
            raise CorruptError("level of a blob", where=self._page.where, expected=f"<= {self._layers.max_def}")
        def_ = np.zeros(leaf.num_rows, dtype=np.uint8)
        def_[missing] = levels
        cleared = np.where(missing, np.uint64(0), positions)
        position = FixedWidth(64, cleared.view(np.uint8), position.count)
        return Leaf(
            PackedStruct((position, size), block.count), None, def_, self._layers, leaf.num_slots, leaf.num_rows
        )
