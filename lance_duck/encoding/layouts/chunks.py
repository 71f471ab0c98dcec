"""Chunks of a miniblock page: the table that lists them and the header of each.

The chunk table (page buffer 0) has a little-endian word for each chunk, u16 in 2.1 and u32 in 2.2 (`has_large_chunk`):

    bits     | field
    0 - 3    | log2 of the value slots; 0 in the last chunk, which holds all remaining slots
    4 -      | bytes / 8 - 1

A chunk (in page buffer 1) is a header, followed by buffers. The header and each buffer are padded to 8 bytes:

    size     | field
    2        | number of levels; 0 in a page without levels
    2        | bytes of the repetition levels; missing in a page without them
    2        | bytes of the definition levels; missing in a page without them
    2 or 4   | bytes of a value buffer, repeated for each (2 in 2.1, 4 in 2.2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.codec import Chunks
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.pages.chunk_headers import read_headers
from lance_duck.store.request import Bytes

Int64s = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """Offsets, sizes and value counts of a page's chunks.

    Attributes:
        offsets: int64 (k + 1,), byte offsets in the chunk buffer.
        items: int64 (k + 1,), number of value slots before each chunk.
        sizes: int64 (k,), number of bytes of each chunk.
        counts: int64 (k,), number of value slots of each chunk.
    """

    offsets: Int64s
    items: Int64s
    sizes: Int64s
    counts: Int64s

    @property
    def num_chunks(self) -> int:
        """Number of chunks in the page."""
        return len(self.offsets) - 1


@dataclass(frozen=True, slots=True)
class ChunkShape:
    """The fields of the chunk headers of a page."""

    has_rep: bool
    has_def: bool
    num_buffers: int
    large: bool


@dataclass(frozen=True, slots=True)
class ParsedChunks:
    """Buffers of some chunks.

    Attributes:
        rep: Repetition levels, or None.
        def_: Definition levels, or None.
        values: Value buffers.
    """

    rep: Chunks | None
    def_: Chunks | None
    values: Chunks


def parse_chunk_table(words: Bytes, large: bool, num_items: int, buffer_size: int, where: str) -> ChunkTable:
    """Parse the chunk table of a page.

    Args:
        words: Page buffer 0.
        large: Whether words are u32.
        num_items: Number of value slots in the page.
        buffer_size: Number of bytes of page buffer 1.
        where: Name of the page, for messages.

    Raises:
        CorruptError: The chunks do not fill the buffer, or hold more items than the page.
    """
    width = 4 if large else 2
    if len(words) % width or len(words) == 0:
        raise CorruptError(
            "the chunk table is not made of whole words",
            where=where,
            expected=f"words of {width} bytes",
            found=f"{len(words)} bytes",
        )
    table = np.frombuffer(words.tobytes(), dtype=f"<u{width}").astype(np.int64)
    sizes = ((table >> 4) + 1) * 8
    offsets = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if offsets[-1] != buffer_size:
        raise CorruptError(
            "the sizes in the chunk table do not add up to the buffer",
            where=where,
            expected=f"{buffer_size} bytes",
            found=int(offsets[-1]),
        )
    items = np.zeros(len(table) + 1, dtype=np.int64)
    np.cumsum(np.int64(1) << (table[:-1] & 15), out=items[1:-1])
    if items[-2] > num_items or num_items > np.iinfo(np.int64).max:
        raise CorruptError(
            "the chunk table has more items than the page",
            where=where,
            expected=num_items,
            found=f"at least {items[-2]}",
        )
    items[-1] = num_items
    return ChunkTable(offsets, items, sizes, np.diff(items))


def parse_chunks(
    data: Bytes, starts: Int64s, sizes: Int64s, items: Int64s, shape: ChunkShape, where: str
) -> ParsedChunks:
    """Find the buffers of chunks.

    Args:
        data: Bytes that hold the chunks.
        starts: (k,), offset of each chunk; chunks lie within `data`.
        sizes: (k,), number of bytes of each chunk.
        items: (k,), number of value slots of each chunk.
        shape: Fields of the headers.
        where: Name of the page, for messages.

    Raises:
        CorruptError: A header or buffer extends past its chunk.
    """
    levels = shape.has_rep + shape.has_def
    begins = np.empty((levels + shape.num_buffers, len(starts)), dtype=np.int64)
    lengths = np.empty_like(begins)
    counts = np.empty(len(starts), dtype=np.int64)
    width = 4 if shape.large else 2
    if not read_headers(
        readonly(data), starts, readonly(sizes), levels, shape.num_buffers, width, begins, lengths, counts
    ):
        raise CorruptError("a buffer reaches beyond its chunk", where=where)
    rep = Chunks(data, begins[:1], lengths[:1], counts) if shape.has_rep else None
    def_ = Chunks(data, begins[levels - 1 : levels], lengths[levels - 1 : levels], counts) if shape.has_def else None
    return ParsedChunks(rep, def_, Chunks(data, begins[levels:], lengths[levels:], items))
