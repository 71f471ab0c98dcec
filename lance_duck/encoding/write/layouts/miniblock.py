"""Miniblock pages: values and levels, cut into chunks. `encoding.layouts.miniblock` describes the bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block
from lance_duck.encoding.compressed import ChunkBuffer, MiniBlockValues
from lance_duck.encoding.layouts.page import Levels
from lance_duck.encoding.write.codecs.compress import compress_levels, compress_mini_block
from lance_duck.encoding.write.costs import MINIBLOCK_VALUES
from lance_duck.encoding.write.layouts.page import EncodedPage, PageLevels, page_encoding
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.pages.join_chunks import cut_levels, place_parts
from lance_duck.wire.pb import encodings21_pb2 as pb

Int64s = NDArray[np.int64]
MAX_LEVELS = 0xFFFF
_MAX_SECTION = 0xFFFF


@dataclass(frozen=True, slots=True)
class _LevelChunks:
    """Compressed levels of all chunks."""

    encoding: pb.CompressiveEncoding
    buffer: ChunkBuffer


@dataclass(frozen=True, slots=True)
class _ChunkSection:
    """A section of all chunks: its bytes, and the end, size and padded size of each chunk's share."""

    data: Bytes
    ends: Int64s
    sizes: Int64s
    room: Int64s

    @classmethod
    def of(cls, buffer: ChunkBuffer) -> _ChunkSection:
        """Return a section with the sizes of its shares."""
        data, ends = buffer
        sizes = _gaps(ends)
        return cls(data, ends, sizes, (sizes + 7) & ~np.int64(7))


def encode_mini_block(block: Block, levels: PageLevels, choice: EncodingOptions, first_row: int) -> EncodedPage | None:
    """Return a miniblock page. Returns None if a chunk would be too large or have too many levels.

    Args:
        block: The value slots, not all of them null.
        levels: Levels of the page.
        choice: Encoding options of the field.
        first_row: First row of the page.
    """
    try:
        values = compress_mini_block(block, choice)
    except UnsupportedError:
        return None
    ends = _level_ends(levels, values.counts)
    most = _most_levels(ends)
    if most > MAX_LEVELS:
        fewer = int(values.counts.max()) * MAX_LEVELS // most // 2
        if fewer < MINIBLOCK_VALUES:
            return None
        values = compress_mini_block(block, choice, 1 << (fewer.bit_length() - 1))
        ends = _level_ends(levels, values.counts)
        if _most_levels(ends) > MAX_LEVELS:
            return None
    return _assemble(values, levels, ends, choice, first_row)


def _level_ends(levels: PageLevels, counts: Int64s) -> Int64s:
    """Return the end of each chunk in levels: right after its last value. The last chunk takes all remaining levels."""
    ends = np.cumsum(counts)
    if levels.def_ is None or not levels.has_hidden:
        return ends
    out = np.empty_like(ends)
    cut_levels(readonly(levels.def_), levels.layers.max_visible, ends, out)
    return out


def _most_levels(ends: Int64s) -> int:
    return int(_gaps(ends).max())


def _assemble(
    values: MiniBlockValues, levels: PageLevels, ends: Int64s, choice: EncodingOptions, first_row: int
) -> EncodedPage | None:
    grammar = choice.grammar
    rep = _compress(levels.rep, ends, levels.layers.max_rep, grammar.levels)
    def_ = _compress(levels.def_, ends, levels.layers.max_def, grammar.levels)
    sections = [_ChunkSection.of(part.buffer) for part in (rep, def_) if part is not None]
    if any(section.sizes.max() > _MAX_SECTION for section in sections):
        return None
    contents = [_ChunkSection.of(buffer) for buffer in values.buffers]
    header = _header(sections, contents, ends, grammar.has_large_chunks)
    parts = [header, *sections, *contents]
    sizes = sum(part.room for part in parts)
    assert isinstance(sizes, np.ndarray)
    if int(sizes.max()) > grammar.max_chunk_bytes:
        return None
    buffers = [_table(values.counts, sizes, grammar.has_large_chunks), _join(parts, sizes)]
    if values.dictionary is not None:
        buffers.append(readonly(values.dictionary.data))
    if levels.rep is not None:
        buffers.append(rep_index(levels.rep, levels.layers.max_rep, ends))
    layout = _layout(values, levels, rep, def_, choice)
    return EncodedPage(tuple(buffers), page_encoding(layout), levels.num_rows, first_row)


def _compress(levels: Levels | None, ends: Int64s, most: int, allowed: frozenset[str]) -> _LevelChunks | None:
    if levels is None:
        return None
    encoding, data, byte_ends = compress_levels(levels, ends, most, allowed)
    return _LevelChunks(encoding, (data, byte_ends))


def _header(sections: list[_ChunkSection], contents: list[_ChunkSection], ends: Int64s, large: bool) -> _ChunkSection:
    """Return the headers of all chunks, as an additional section."""
    k = len(contents[0].ends) if contents else 1
    small = 2 * (1 + len(sections))
    width = 4 if large else 2
    size = small + width * len(contents)
    out = np.zeros((k, size), dtype=np.uint8)
    words = [_gaps(ends), *(section.sizes for section in sections)] if sections else []
    for i, word in enumerate(words):
        out[:, 2 * i : 2 * i + 2] = word.astype("<u2")[:, None].view(np.uint8)
    for i, part in enumerate(contents):
        at = small + width * i
        out[:, at : at + width] = part.sizes.astype(f"<u{width}")[:, None].view(np.uint8)
    return _ChunkSection.of((out.reshape(-1), np.arange(1, k + 1, dtype=np.int64) * size))


def _join(parts: list[_ChunkSection], sizes: Int64s) -> Bytes:
    """Return the chunks, each with its sections in order and padded to 8 bytes."""
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    places = np.cumsum(sizes) - sizes
    for part in parts:
        place_parts(readonly(part.data), readonly(part.ends), places, out)
        places = places + part.room
    return out


def _table(counts: Int64s, sizes: Int64s, large: bool) -> Bytes:
    logs = np.log2(np.maximum(counts, 1)).astype(np.int64)
    logs[-1] = 0
    words = ((sizes // 8 - 1) << 4) | logs
    return words.astype("<u4" if large else "<u2").view(np.uint8)


def _gaps(ends: Int64s) -> Int64s:
    """Convert ends to sizes."""
    sizes = ends.copy()
    sizes[1:] -= ends[:-1]
    return sizes


def _layout(
    values: MiniBlockValues,
    levels: PageLevels,
    rep: _LevelChunks | None,
    def_: _LevelChunks | None,
    choice: EncodingOptions,
) -> pb.PageLayout:
    layout = pb.MiniBlockLayout(
        rep_compression=None if rep is None else rep.encoding,
        def_compression=None if def_ is None else def_.encoding,
        value_compression=values.encoding,
        layers=levels.kinds,
        num_buffers=values.num_buffers,
        repetition_index_depth=int(rep is not None),
        num_items=levels.num_slots,
        has_large_chunk=choice.grammar.has_large_chunks,
    )
    if values.dictionary is not None:
        layout.dictionary.CopyFrom(values.dictionary.encoding)
        layout.num_dictionary_items = values.dictionary.count
    return pb.PageLayout(mini_block_layout=layout)


def rep_index(rep: Levels, max_rep: int, ends: NDArray[np.int64]) -> Bytes:
    """Build the repetition index of a page.

    For each chunk, it counts the rows that end in the chunk, and the trailing entries of a row that continues.

    Args:
        rep: Levels of the page. The first begins a row.
        max_rep: Level that begins a row.
        ends: int64 (k,), end of each chunk in entries. The last is len(rep).
    """
    heads = np.flatnonzero(rep == max_rep)
    begun_rows = heads.searchsorted(ends)
    goes_on = np.ones(len(ends), dtype=np.bool_)
    inside = ends < len(rep)
    goes_on[inside] = rep[ends[inside]] != max_rep
    goes_on[-1] = False
    ended = begun_rows - goes_on
    starts = np.maximum(heads[np.maximum(begun_rows - 1, 0)], np.concatenate([[0], ends[:-1]])) if len(heads) else ends
    table = np.zeros((len(ends), 2), dtype="<u8")
    table[:, 0] = np.diff(ended, prepend=0)
    table[:, 1] = np.where(goes_on, ends - starts, 0)
    return table.reshape(-1).view(np.uint8)
