"""Fixed-size lists, with their items one after the other.

A miniblock chunk has a validity buffer for each list level that may hold nulls, outermost first, followed by the item
buffers. Validity has a bit for each item of that level, 1 if valid, lowest bit first. The last byte is padded.

In full zip, a value of d items (d1 * d2 * … for lists of lists) consists of:

    size          field
    ceil(d1 / 8)  validity of the outermost lists' items, if they hold nulls
    …             the same for each level further in, with d1 * d2 bits and so on
    d * bits / 8  items; nothing if all are null (constant encoding)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, FixedSizeList, FixedWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codec_checks import fixed_values, justified, no_form
from lance_duck.encoding.codecs.constant import Constant
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.compressed import ChunkBuffer
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.flat import spread_bits
from lance_duck.wire.pb import encodings21_pb2 as pb

if TYPE_CHECKING:
    from lance_duck.kernels.numbers import flat_encode
else:
    flat_encode = lazy.modules(globals(), "lance_duck.kernels.numbers", "flat_encode")

MAX_ITEMS: Final = 1 << 40
"""Maximum number of items in a chunk, so that sizes cannot overflow. The item codec checks the available bytes."""


@dataclass(frozen=True, slots=True)
class FixedSizeListCodec:
    """Lists of `dimension` items.

    Attributes:
        dimension: Items of a list, 1 to 2**31 - 1.
        has_validity: Whether items may be null.
        inner: Codec of the items: flat, constant, or fixed-size lists.
    """

    dimension: int
    has_validity: bool
    inner: Codec

    @classmethod
    def from_proto(
        cls, message: pb.FixedSizeList, codec: Callable[[pb.CompressiveEncoding], Codec]
    ) -> FixedSizeListCodec:
        """Return the codec. Raises UnsupportedError for lists of no items, or of too many for Arrow."""
        dimension = message.items_per_value
        if not 0 < dimension <= MAX_INT32:
            raise UnsupportedError(
                "the list size is not supported", where="page encoding", expected="1 to 2**31 - 1", found=dimension
            )
        return cls(dimension, message.has_validity, codec(message.values))

    @property
    def num_buffers(self) -> int:
        """Number of item buffers, plus one for validity if items may be null."""
        return self.inner.num_buffers + self.has_validity

    def decode_chunks(self, chunks: Chunks) -> FixedSizeList:
        """Return the lists of all chunks."""
        most = np.full(len(chunks.counts), MAX_ITEMS // self.dimension, np.int64)
        count = justified(chunks.counts, most, "fixed size list")
        counts = chunks.counts * self.dimension
        validity, first = None, int(self.has_validity)
        if self.has_validity:
            items = justified(counts, chunks.sizes[0] * 8, "validity of fixed size list")
            validity = unset(items, np.uint8)
            spread_bits(readonly(chunks.data), chunks.starts[0], counts, validity)
        rest = Chunks(chunks.data, chunks.starts[first:], chunks.sizes[first:], counts)
        return FixedSizeList(self.dimension, self.inner.decode_chunks(rest), validity, count)

    def decode_block(self, buffer: Bytes, count: int) -> FixedSizeList:
        """Decode the lists of one buffer. Raises UnsupportedError for nullable items: blocks lack validity."""
        if self.has_validity:
            raise no_form("fixed size list with nulls", "block")
        items = self.inner.decode_block(buffer, count * self.dimension)
        return FixedSizeList(self.dimension, items, None, count)

    def decode_blocks(self, chunks: Chunks) -> Block:
        """Raise UnsupportedError: levels are numbers."""
        raise no_form("fixed size list", "level")

    def decode_values(self, values: Block) -> FixedSizeList:
        """Decode lists that were encoded one by one. Each value has all bits of a list, including validity."""
        levels, bits = self._levels()
        total = prod(level.dimension for level in levels)
        fixed = fixed_values(values, self._value_bytes(levels, bits) * 8, "fixed size list")
        stride = fixed.bits // 8
        if len(fixed.data) < fixed.count * stride:
            raise CorruptError(
                "the buffer is too short for its values",
                where="fixed size list encoding",
                expected=fixed.count * stride,
            )
        rows = fixed.data[: fixed.count * stride].reshape(fixed.count, stride)
        place, items_in = 0, 1
        validity: list[Bytes | None] = []
        for level in levels:
            items_in *= level.dimension
            size = (items_in + 7) // 8 * level.has_validity
            validity.append(_bits(rows[:, place : place + size], items_in) if size else None)
            place += size
        block: Block = _items(rows[:, place:], bits, total)
        for level, valid in zip(reversed(levels), reversed(validity), strict=True):
            items_in //= level.dimension
            block = FixedSizeList(level.dimension, block, valid, fixed.count * items_in)
        assert isinstance(block, FixedSizeList)
        return block

    @property
    def value_bytes(self) -> int:
        """Number of bytes of a single encoded list."""
        return self._value_bytes(*self._levels())

    def to_proto(self) -> pb.CompressiveEncoding:
        """Return the description of this encoding."""
        message = pb.FixedSizeList(
            items_per_value=self.dimension, values=self.inner.to_proto(), has_validity=self.has_validity
        )
        return pb.CompressiveEncoding(fixed_size_list=message)

    def encode_chunks(self, block: Block, counts: NDArray[np.int64]) -> tuple[ChunkBuffer, ...]:
        """Return the validity of the items, if they may be null, and the items."""
        lists = _lists(block, self.dimension)
        counts = counts * self.dimension
        items = self.inner.encode_chunks(lists.items, counts)
        if not self.has_validity:
            return items
        ends = np.cumsum((counts + 7) // 8)
        bits = np.empty(int(ends[-1]), np.uint8)
        flat_encode.gather_bits(readonly(_validity(lists)), counts, bits)
        return ((bits, ends), *items)

    def encode_block(self, block: Block) -> Bytes:
        """Return the items. Raises UnsupportedError for nullable items, since a block does not store validity."""
        if self.has_validity:
            raise no_form("fixed size list with nulls", "block")
        return self.inner.encode_block(_lists(block, self.dimension).items)

    def encode_values(self, block: Block) -> FixedWidth:
        """Return the bits of each list, including validity. A view if items are whole bytes and never null."""
        levels, bits = self._levels()
        parts, items_in, inner = [], 1, block
        for level in levels:
            inner = _lists(inner, level.dimension)
            items_in *= level.dimension
            if level.has_validity:
                parts.append(np.packbits(_validity(inner).reshape(block.count, items_in), axis=1, bitorder="little"))
            inner = inner.items
        items = fixed_values(inner, bits, "fixed size list")
        width = items_in if bits == 1 else items_in * bits // 8
        rows = items.data[: block.count * width].reshape(block.count, width)
        parts.append(np.packbits(rows, axis=1, bitorder="little") if bits == 1 else rows)
        joined = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return FixedWidth(self._value_bytes(levels, bits) * 8, joined.reshape(-1), block.count)

    @staticmethod
    def _value_bytes(levels: list[FixedSizeListCodec], bits: int) -> int:
        size, items = 0, 1
        for level in levels:
            items *= level.dimension
            size += (items + 7) // 8 * level.has_validity
        return size + (items * bits + 7) // 8

    def _levels(self) -> tuple[list[FixedSizeListCodec], int]:
        """Return the codecs of this list and its inner lists, outermost first, and the item bits (0 if all null)."""
        levels = [self]
        while isinstance(inner := levels[-1].inner, FixedSizeListCodec):
            levels.append(inner)
        if isinstance(inner, Constant) and levels[-1].has_validity:
            return levels, 0
        if not isinstance(inner, Flat):
            raise no_form("fixed size list of values that are not flat", "per-value")
        return levels, inner.bits


def _lists(block: Block, dimension: int) -> FixedSizeList:
    """Return `block` if it holds lists of this size. Otherwise, raises CorruptError."""
    if not isinstance(block, FixedSizeList) or block.dimension != dimension:
        raise CorruptError("values are not lists", where="fixed size list encoding", expected=f"{dimension} items")
    return block


def _validity(lists: FixedSizeList) -> Bytes:
    """Return the item validity of lists, a byte for each item."""
    return np.ones(lists.items.count, np.uint8) if lists.validity is None else lists.validity


def _bits(rows: Bytes, count: int) -> Bytes:
    """Return `count` bits from the start of each row, as bytes."""
    return np.unpackbits(rows, axis=1, count=count, bitorder="little").reshape(-1)


def _items(rows: Bytes, bits: int, count: int) -> FixedWidth:
    """Return `count` items from each row. A view if the rows do not contain anything else."""
    data = _bits(rows, count) if bits == 1 else np.ascontiguousarray(rows).reshape(-1)
    return FixedWidth(bits, data, len(rows) * count)


def has_item_validity(codec: Codec) -> bool:
    """Return whether values may have null items. False only for fixed-size lists that lack validity at all depths."""
    if not isinstance(codec, FixedSizeListCodec):
        return True
    levels = [codec]
    while isinstance(inner := levels[-1].inner, FixedSizeListCodec):
        levels.append(inner)
    return any(level.has_validity for level in levels)
