"""Fetches and decodes chunks of a miniblock page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import Block, Dictionary, FixedWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.fixed_size_list import FixedSizeListCodec
from lance_duck.encoding.codecs.flat import Flat, LowFlat
from lance_duck.encoding.layouts.chunks import ChunkShape, ChunkTable, Int64s, ParsedChunks, parse_chunks
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.levels import decode_level_chunks
from lance_duck.encoding.layouts.page import Levels, Page
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.take import gather_fixed
from lance_duck.store.request import ByteRange, Bytes, Request


@dataclass(frozen=True, slots=True)
class MiniBlockLayout:
    """Description of a miniblock page.

    Attributes:
        layers: Meaning of the levels.
        shape: Fields of the chunk headers.
        rep: Codec of the repetition levels, or None.
        def_: Codec of the definition levels, or None.
        values: Codec of the values.
        dictionary: Codec of the dictionary, or None.
        num_dictionary_items: Number of values in the dictionary.
        num_items: Number of value slots in the page.
        rep_index_depth: Depth of the repetition index, or 0 without one.
    """

    layers: Layers
    shape: ChunkShape
    rep: Codec | None
    def_: Codec | None
    values: Codec
    dictionary: Codec | None
    num_dictionary_items: int
    num_items: int
    rep_index_depth: int


@dataclass(frozen=True, slots=True)
class LevelChunks:
    """Concatenated levels of some chunks.

    Attributes:
        counts: int64 (chunks,), number of levels of each chunk.
    """

    rep: Levels | None
    def_: Levels | None
    counts: Int64s

    def before(self) -> Int64s:
        """Return the number of levels before each chunk, then the total: int64 (chunks + 1,)."""
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(self.counts)])


def fetch_range(page: Page, table: ChunkTable, first: int, last: int, shape: ChunkShape) -> Request[ParsedChunks]:
    """Fetch the chunks from `first` to `last` (exclusive), and find their buffers."""
    begin = int(table.offsets[first])
    data = np.empty(0, dtype=np.uint8)
    if last > first:
        (data,) = yield [page.byte_range(1, begin, int(table.offsets[last]) - begin)]
    starts = table.offsets[first:last] - begin
    return parse_chunks(data, starts, table.sizes[first:last], table.counts[first:last], shape, page.where)


def fetch_chunks(page: Page, table: ChunkTable, chunks: Int64s, shape: ChunkShape) -> Request[ParsedChunks]:
    """Fetch ascending chunks, and find their buffers. Adjacent chunks are fetched as one range."""
    starts, sizes = table.offsets[chunks], table.sizes[chunks]
    if len(chunks) == 0:
        return parse_chunks(np.empty(0, dtype=np.uint8), starts, sizes, sizes, shape, page.where)
    ends = starts + sizes
    if int(starts.min()) < 0 or int(ends.max()) > page.buffer_size(1):
        raise CorruptError("the chunks reach beyond their buffer", where=page.where, found=int(ends.max()))
    is_first = np.append(True, starts[1:] != ends[:-1])
    first = np.flatnonzero(is_first)
    begin, end = starts[first], ends[np.append(first[1:], len(chunks)) - 1]
    at = page.buffers[1][0]
    ranges = [ByteRange(page.source, at + a, b - a) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
    pieces = yield ranges
    data, places = join_ranges(ranges, pieces)
    starts = starts + (places - begin)[np.cumsum(is_first) - 1]
    return parse_chunks(data, starts, sizes, table.counts[chunks], shape, page.where)


def decode_levels_of(parsed: ParsedChunks, layout: MiniBlockLayout, where: str) -> LevelChunks:
    """Decode the levels of chunks, and check them against the number of value slots.

    Raises:
        CorruptError: A level is too high, or there are too few or too many levels.
    """
    rep = def_ = None
    items = counts = parsed.values.counts
    if parsed.rep is not None and layout.rep is not None:
        counts = parsed.rep.counts
        rep = decode_level_chunks(layout.rep, parsed.rep, layout.layers.max_rep, where)
    if parsed.def_ is not None and layout.def_ is not None:
        counts = parsed.def_.counts
        def_ = decode_level_chunks(layout.def_, parsed.def_, layout.layers.max_def, where)
    if rep is None and counts is not items and not np.array_equal(counts, items):
        raise CorruptError("the level count of a chunk is wrong", where=where, expected="one for each item")
    if rep is not None:
        slots = len(rep)
        if def_ is not None and layout.layers.max_visible < layout.layers.max_def:
            slots = int(np.count_nonzero(def_ <= layout.layers.max_visible))
        if slots != int(items.sum()):
            raise CorruptError(
                "the number of levels does not match the items", where=where, expected=int(items.sum()), found=slots
            )
    return LevelChunks(rep, def_, counts)


def decode_values(
    parsed: ParsedChunks, layout: MiniBlockLayout, dictionary: Block | None, def_: Levels | None, where: str
) -> Block:
    """Decode the values of chunks. Indices into `dictionary` are checked.

    Raises:
        CorruptError: The buffers cannot hold the values, or an index of a valid value is too high.
    """
    block = layout.values.decode_chunks(parsed.values)
    return block if dictionary is None else dictionary_of_indices(block, dictionary, layout.layers, def_, where)


def dictionary_of_indices(
    block: Block, dictionary: Block, layers: Layers, def_: Levels | None, where: str
) -> Dictionary:
    """Return index values as a dictionary block.

    Raises:
        CorruptError: The values are not unsigned integers, or the index of a valid value is too high.
    """
    if not isinstance(block, FixedWidth) or block.bits not in (8, 16, 32, 64):
        raise CorruptError("the dictionary indices are not integers", where=where, expected="unsigned integers")
    indices = np.ascontiguousarray(block.data).view(f"<u{block.bits // 8}")
    if len(indices) and int(indices.max()) >= dictionary.count:
        wild = indices >= dictionary.count
        valid = True if def_ is None else def_[def_ <= layers.max_visible] == 0
        if np.any(wild & valid):
            raise CorruptError(
                "a dictionary index is too high", where=where, expected=f"below {dictionary.count}", found=indices.max()
            )
        indices = np.where(wild, indices.dtype.type(0), indices)
    return Dictionary(indices, dictionary)


def plain_width(codec: Codec) -> int | None:
    """Return the size of a value in bytes if chunks hold plain values, or None otherwise."""
    if isinstance(codec, LowFlat):
        codec = codec.whole
    if isinstance(codec, Flat) and codec.bits % 8 == 0:
        return codec.bits // 8
    if isinstance(codec, FixedSizeListCodec) and not codec.has_validity:
        width = plain_width(codec.inner)
        return None if width is None else width * codec.dimension
    return None


def take_plain(parsed: ParsedChunks, codec: Codec, width: int, chunk: Int64s, place: Int64s, where: str) -> Block:
    """Read single values from chunks of plain values, without reading the values around them.

    Args:
        parsed: The chunks.
        codec: Codec of the values.
        width: `plain_width` of the codec.
        chunk: int64 (n,), index of each value's chunk in `parsed`.
        place: int64 (n,), position of each value in its chunk.
        where: Name of the page, for messages.

    Raises:
        CorruptError: A chunk is too short for its values.
    """
    values = parsed.values
    if np.any(values.counts * width > values.sizes[0]):
        raise CorruptError("the value count exceeds what the bytes can hold", where=where)
    starts = values.starts[0][chunk] + place * width
    if isinstance(codec, LowFlat):
        return codec.take(values.data, starts)
    out = unset(len(place) * width, np.uint8)
    gather_fixed(readonly(values.data), starts, width, out)
    return codec.decode_block(out, len(place))


def join_ranges(ranges: Sequence[ByteRange], pieces: Sequence[Bytes]) -> tuple[Bytes, NDArray[np.int64]]:
    """Return the bytes that hold all ranges of one source, and the offset of each range in them.

    Views of a mapped file already belong to one array, which is not copied. Other ranges are concatenated.
    """
    if len(pieces) == 1:
        return pieces[0], np.zeros(1, dtype=np.int64)
    sizes = np.array([r.size for r in ranges], dtype=np.int64)
    whole = pieces[0].base if pieces else None
    if isinstance(whole, np.ndarray) and _holds(whole, ranges, pieces):
        return whole, np.array([r.offset for r in ranges], dtype=np.int64)
    data = joined(pieces, np.uint8)
    return data, np.cumsum(sizes) - sizes


def _holds(whole: Bytes, ranges: Sequence[ByteRange], pieces: Sequence[Bytes]) -> bool:
    if whole.dtype != np.uint8 or whole.ndim != 1 or whole.nbytes != ranges[0].source.size:
        return False
    if not all(part.base is whole for part in pieces):
        return False
    ends = (0, len(pieces) - 1)
    return all(_address(pieces[i]) == _address(whole) + ranges[i].offset for i in ends)


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])
