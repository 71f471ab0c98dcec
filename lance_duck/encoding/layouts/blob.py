"""Blob layout (2.1): values are elsewhere in the file, and the page stores a description of each.

A description is a packed struct (u64 position, u64 size). The position counts from the start of the file:

    position | size | meaning
    0        | 0    | an empty value
    any      | > 0  | a value
    > 0      | 0    | without a value: position is (def << 16) | rep
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.page import Leaf, Page, PageReader, Rows
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.take import gather_variable
from lance_duck.store.request import ByteRange, ByteSource, Request

_LARGE = 4096
_GAP = 64


class BlobReader:
    """A reader of the descriptions of a blob page. Its blocks are packed structs (position, size)."""

    def __init__(self, page: Page, inner: PageReader, layers: Layers) -> None:
        if layers.max_rep:
            raise UnsupportedError("blobs inside lists are not supported", where=page.where)
        self._page = page
        self._inner = inner
        self._layers = layers

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Always False."""
        return False

    @property
    def is_prepared(self) -> bool:
        """Whether the page of descriptions is prepared."""
        return self._inner.is_prepared

    @property
    def has_levels(self) -> bool:
        """Always True: descriptions of blobs determine which are null."""
        return True

    @property
    def has_item_validity(self) -> bool:
        """Always True, although blobs do not have items."""
        return True

    def read_points(self, rows: NDArray[np.int64]) -> Leaf | None:
        """Always None: rows can only be read by `read`."""
        return None

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read the descriptions of rows. A null is described as (0, 0)."""
        leaf = yield from self._inner.read(rows)
        block = leaf.block
        if not isinstance(block, PackedStruct) or len(block.fields) != 2:
            raise CorruptError(
                "the blob page does not store blob descriptions", where=self._page.where, expected="position and size"
            )
        position, size = block.fields
        positions, sizes = _numbers(position, self._page.where), _numbers(size, self._page.where)
        is_null = (sizes == 0) & (positions != 0)
        if not is_null.any():
            return Leaf(block, None, None, self._layers, leaf.num_slots, leaf.num_rows)
        levels = positions[is_null] >> np.uint64(16)
        if int(levels.max()) > self._layers.max_def:
            raise CorruptError(
                "the level of a blob is too high", where=self._page.where, expected=f"<= {self._layers.max_def}"
            )
        def_ = np.zeros(leaf.num_rows, dtype=np.uint8)
        def_[is_null] = levels
        cleared: NDArray[np.uint64] = np.where(is_null, np.uint64(0), positions)
        position = FixedWidth(64, cleared.view(np.uint8), block.count)
        return Leaf(
            PackedStruct((position, size), block.count), None, def_, self._layers, leaf.num_slots, leaf.num_rows
        )


def read_blobs(block: PackedStruct, source: ByteSource, where: str) -> Request[VariableWidth]:
    """Read the blobs that descriptions (position, size) refer to.

    Raises:
        CorruptError: A description points past the end of the file, or descriptions overlap.
    """
    position, size = block.fields
    return (yield from read_extents(_numbers(position, where), _numbers(size, where), source, where))


def read_extents(
    positions: NDArray[np.uint64], sizes: NDArray[np.uint64], source: ByteSource, where: str
) -> Request[VariableWidth]:
    """Read extents of one file. Adjacent extents are read as one range.

    Args:
        positions: First byte of each extent.
        sizes: Number of bytes of each extent. Extents of size 0 are not read.
        source: The file.
        where: Name of the column, for messages.

    Raises:
        CorruptError: An extent extends past the file, or extents overlap.
    """
    filled = sizes > 0
    if np.any(sizes > source.size) or np.any(positions[filled] > source.size - sizes[filled]):
        raise CorruptError("blob reaches beyond the end of the file", where=where, expected=f"<= {source.size}")
    if float(np.sum(sizes, dtype=np.float64)) > source.size:
        raise CorruptError("blobs overlap", where=where, expected=f"<= {source.size} bytes")
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    total = int(offsets[-1])
    if not total:
        return VariableWidth(offsets, np.empty(0, dtype=np.uint8))
    starts, lengths = positions[filled], sizes[filled]
    first, last = int(starts.min()), int((starts + lengths).max())
    if total > _LARGE * len(starts) or last - first > 2 * total + _GAP * len(starts):
        extents = zip(starts.tolist(), lengths.tolist(), strict=True)
        pieces = yield [ByteRange(source, start, length) for start, length in extents]
        return VariableWidth(offsets, np.concatenate(pieces))
    (data,) = yield [ByteRange(source, first, last - first)]
    places = np.where(filled, positions, np.uint64(first)) - np.uint64(first)
    out = np.empty(total, dtype=np.uint8)
    gather_variable(readonly(data), places.view(np.int64), offsets, out)
    return VariableWidth(offsets, out)


def _numbers(block: Block, where: str) -> NDArray[np.uint64]:
    if not isinstance(block, FixedWidth) or block.bits != 64:
        raise CorruptError("blob positions and sizes have the wrong width", where=where, expected="64 bits")
    numbers: NDArray[np.uint64] = np.ascontiguousarray(block.data).view("<u8")
    return numbers
