"""Miniblock layout: a page of small values, cut into chunks of a few KiB that are decoded as a whole.

page buffer | content
0           | chunk table: see `encoding.layouts.chunks`
1           | chunks
2           | dictionary, when values are indices into one
last        | repetition index, when there are lists: which rows begin in which chunk

The repetition index has `depth` + 1 words of 8 bytes for each chunk. Only the first two are used:

offset | size | field (little-endian)
0      | 8    | rows that end in the chunk
8      | 8    | values at the chunk's end that belong to a row which continues in the next chunk, or 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.encoding.arrow.take import slice_block, take
from lance_duck.encoding.block import Block
from lance_duck.encoding.codecs.fixed_size_list import has_item_validity
from lance_duck.encoding.layouts.chunk_decoder import (
    LevelChunks,
    MiniBlockLayout,
    decode_levels_of,
    decode_values,
    fetch_chunks,
    fetch_range,
    plain_width,
    take_plain,
)
from lance_duck.encoding.layouts.chunks import ChunkTable, Int64s, parse_chunk_table
from lance_duck.encoding.layouts.page import Leaf, Page, Rows
from lance_duck.encoding.layouts.page_rows import check_rows, slice_bounds
from lance_duck.encoding.layouts.point_read import PointReader
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.pages.assemble import choose_entries, row_bounds
from lance_duck.kernels.pages.chunk_headers import group_by_chunk
from lance_duck.store.request import Bytes, Request, gather, run

_MAX_DICTIONARY = 1 << 40


@dataclass(frozen=True, slots=True)
class _MiniBlockState:
    """The parts of a page that are read once: chunk table, repetition index, dictionary, point reader."""

    table: ChunkTable
    index: RowIndex | None
    dictionary: Block | None
    points: PointReader | None


class MiniBlockReader:
    """A reader of a miniblock page."""

    def __init__(self, page: Page, layout: MiniBlockLayout) -> None:
        if not layout.layers.max_rep and layout.num_items != page.num_rows:
            raise CorruptError(
                "the item count of the page differs from its row count",
                where=page.where,
                expected=page.num_rows,
                found=layout.num_items,
            )
        self._page = page
        self._layout = layout
        self._state: _MiniBlockState | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Whether values are indices into a dictionary."""
        return self._layout.dictionary is not None

    @property
    def is_prepared(self) -> bool:
        """Whether chunk table, repetition index and dictionary were read."""
        return self._state is not None

    @property
    def has_levels(self) -> bool:
        """Whether the layers of the page have definition levels."""
        return self._layout.layers.max_def > 0

    @property
    def has_item_validity(self) -> bool:
        """Whether the value codec stores which items of fixed-size lists are null."""
        return has_item_validity(self._layout.values)

    @property
    def lists_key(self) -> object | None:
        """Key of a page with lists. `joined_lists` joins pages with equal keys. None if it cannot join the page."""
        layout = self._layout
        if layout.rep is None or layout.dictionary is not None:
            return None
        return layout.layers, layout.shape, layout.rep, layout.def_, layout.values

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows. Each run of adjacent chunks that contain requested rows is one byte range."""
        count = check_rows(rows, self.num_rows)
        state = yield from self._prepared()
        if count == 0:
            rows = slice(0, 0)
        if state.index is not None:
            return (yield from self._read_nested(rows, count, state, state.index))
        return (yield from self._read_flat(rows, count, state))

    def read_points(self, rows: Int64s) -> Leaf | None:
        """Read a few rows: see `PageReader.read_points`."""
        state = self._state or run(self._load())
        return None if state.points is None else state.points.take(rows)

    def _prepared(self) -> Request[_MiniBlockState]:
        return self._state or (yield from self._load())

    def _load(self) -> Request[_MiniBlockState]:
        page, layout = self._page, self._layout
        ranges = [page.byte_range(0)]
        if layout.dictionary is not None:
            ranges.append(page.byte_range(2))
        if layout.layers.max_rep:
            ranges.append(page.byte_range(len(page.buffers) - 1))
        pieces = yield ranges
        table = parse_chunk_table(pieces[0], layout.shape.large, layout.num_items, page.buffer_size(1), page.where)
        dictionary = None
        if layout.dictionary is not None:
            if layout.num_dictionary_items > _MAX_DICTIONARY:
                raise CorruptError(
                    "the dictionary has too many values", where=page.where, found=layout.num_dictionary_items
                )
            dictionary = layout.dictionary.decode_block(pieces[1], layout.num_dictionary_items)
            if dictionary.count == 0:
                raise CorruptError("the dictionary does not have values", where=page.where)
        index = None
        if layout.layers.max_rep:
            index = parse_rep_index(pieces[-1], layout.rep_index_depth, table.num_chunks, page.num_rows, page.where)
        point_reader = PointReader(page, layout, table, dictionary) if PointReader.can_read(layout) else None
        self._state = _MiniBlockState(table, index, dictionary, point_reader)
        return self._state

    def _read_flat(self, rows: Rows, count: int, state: _MiniBlockState) -> Request[Leaf]:
        if not isinstance(rows, slice):
            return (yield from self._take_flat(rows, state))
        items = state.table.items
        start, stop = slice_bounds(rows)
        first = int(items.searchsorted(start, side="right")) - 1
        last = int(items.searchsorted(stop, side="left")) if count else first
        parsed = yield from fetch_range(self._page, state.table, first, last, self._layout.shape)
        levels = decode_levels_of(parsed, self._layout, self._page.where)
        block = decode_values(parsed, self._layout, state.dictionary, levels.def_, self._page.where)
        start, stop = (start - int(items[first]), stop - int(items[first])) if count else (0, 0)
        def_ = None if levels.def_ is None else levels.def_[start:stop]
        return Leaf(slice_block(block, start, stop), None, def_, self._layout.layers, count, count)

    def _take_flat(self, rows: Int64s, state: _MiniBlockState) -> Request[Leaf]:
        items, layout, where = state.table.items, self._layout, self._page.where
        chunks = unset(min(len(rows), state.table.num_chunks), np.int64)
        chunk, place = unset(len(rows), np.int64), unset(len(rows), np.int64)
        chunks = chunks[: group_by_chunk(readonly(rows), readonly(items), chunks, chunk, place)]
        parsed = yield from fetch_chunks(self._page, state.table, chunks, layout.shape)
        levels = decode_levels_of(parsed, layout, where)
        width = plain_width(layout.values) if state.dictionary is None else None
        if width is not None:
            block = take_plain(parsed, layout.values, width, chunk, place, where)
        else:
            sizes = parsed.values.counts
            place_in_all = place + (np.cumsum(sizes) - sizes)[chunk]
            block = take(decode_values(parsed, layout, state.dictionary, levels.def_, where), place_in_all)
        def_ = None if levels.def_ is None else levels.def_[place + levels.before()[chunk]]
        return Leaf(block, None, def_, layout.layers, len(rows), len(rows))

    def _read_nested(self, rows: Rows, count: int, state: _MiniBlockState, index: RowIndex) -> Request[Leaf]:
        page, table, shape = self._page, state.table, self._layout.shape
        if isinstance(rows, slice):
            bounds = np.array(slice_bounds(rows), dtype=np.int64)
            first = int(index.chunk_of(bounds)[0])
            last = int(index.chunk_end(bounds)[1]) if count else first
            chunks = np.arange(first, last, dtype=np.int64)
        else:
            marks = np.zeros(table.num_chunks + 1, dtype=np.int64)
            np.add.at(marks, index.chunk_of(rows), 1)
            np.subtract.at(marks, index.chunk_end(rows + 1), 1)
            chunks = np.flatnonzero(np.cumsum(marks[:-1]))
        parsed = yield from fetch_chunks(page, table, chunks, shape)
        levels = decode_levels_of(parsed, self._layout, page.where)
        block = decode_values(parsed, self._layout, state.dictionary, levels.def_, page.where)
        starts, stops = self._row_levels(rows, chunks, levels, index)
        return self._choose(block, levels, starts, stops, count)

    def _row_levels(self, rows: Rows, chunks: Int64s, levels: LevelChunks, index: RowIndex) -> tuple[Int64s, Int64s]:
        """Return the ranges of levels to read: one range for a slice of rows, otherwise one range per row."""
        assert levels.rep is not None
        if len(chunks) == 0:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        begins = index.first_row[chunks + 1] - index.first_row[chunks]
        rows_before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(begins)])
        levels_before = levels.before()
        if isinstance(rows, slice):
            level_rows = np.array(slice_bounds(rows), dtype=np.int64) - index.first_row[chunks[0]]
        else:
            chunk = index.chunk_of(rows)
            head = rows_before[chunks.searchsorted(chunk)] + rows - index.first_row[chunk]
            level_rows = np.stack([head, head + 1], axis=1).reshape(-1)
        if not row_bounds(levels.rep, self._layout.layers.max_rep, levels_before, rows_before, level_rows):
            raise CorruptError("repetition levels do not match the repetition index", where=self._page.where)
        if isinstance(rows, slice):
            return level_rows[:1], level_rows[1:]
        last = chunks.searchsorted(index.chunk_end(rows + 1) - 1)
        return np.ascontiguousarray(level_rows[0::2]), np.minimum(level_rows[1::2], levels_before[last + 1])

    def _choose(self, block: Block, levels: LevelChunks, starts: Int64s, stops: Int64s, count: int) -> Leaf:
        """Return the levels in the ranges, and the values of all entries with a value."""
        layers = self._layout.layers
        rep, def_ = levels.rep, levels.def_
        assert rep is not None
        if len(starts) == 1:
            start, stop = int(starts[0]), int(stops[0])
            before, slots = start, stop - start
            if def_ is not None and layers.max_visible < layers.max_def:
                before = int(np.count_nonzero(def_[:start] <= layers.max_visible))
                slots = int(np.count_nonzero(def_[start:stop] <= layers.max_visible))
            values = slice_block(block, before, before + slots)
            return Leaf(values, rep[start:stop], None if def_ is None else def_[start:stop], layers, slots, count)
        size = int((stops - starts).sum())
        chosen_rep, items = np.empty(size, dtype=np.uint8), np.empty(size + 1, dtype=np.int64)
        all_def = np.empty(0, dtype=np.uint8) if def_ is None else def_
        chosen_def = np.empty(0 if def_ is None else size, dtype=np.uint8)
        slots = choose_entries(rep, all_def, layers.max_visible, starts, stops, chosen_rep, chosen_def, items)
        values = take(block, items[:slots])
        return Leaf(values, chosen_rep, None if def_ is None else chosen_def, layers, slots, count)


def joined_lists(readers: Sequence[MiniBlockReader]) -> Request[MiniBlockReader]:
    """Return a reader of the concatenated rows of several pages. The reader decodes the pages' chunks together.

    Args:
        readers: Page readers of one source with the same `lists_key`.
    """
    states = yield from gather([reader._prepared() for reader in readers])
    pages, tables = [reader._page for reader in readers], [state.table for state in states]
    indexes = [state.index for state in states if state.index is not None]
    chunks = np.array([table.num_chunks for table in tables], dtype=np.int64)
    rows = np.array([page.num_rows for page in pages], dtype=np.int64)
    starts = _end_to_end([table.offsets for table in tables], [page.buffers[1][0] for page in pages], chunks)
    sizes = np.concatenate([table.sizes for table in tables])
    counts = np.concatenate([table.counts for table in tables])
    items = np.append(np.int64(0), np.cumsum(counts))
    first_row = _end_to_end([index.first_row for index in indexes], (np.cumsum(rows) - rows).tolist(), chunks)
    continues = np.append(np.concatenate([index.continues[:-1] for index in indexes]), False)
    source, first = pages[0].source, readers[0]
    page = replace(pages[0], buffers=((0, 0), (0, source.size)), num_rows=int(rows.sum()))
    joined = MiniBlockReader(page, replace(first._layout, num_items=int(items[-1])))
    table = ChunkTable(np.append(starts, starts[-1] + sizes[-1]), items, sizes, counts)
    joined._state = _MiniBlockState(table, RowIndex(np.append(first_row, rows.sum()), continues), None, None)
    return joined


def _end_to_end(parts: Sequence[Int64s], bases: Sequence[int], counts: Int64s) -> Int64s:
    """Add each array's base to its numbers, drop its last number, and concatenate. See `joined_lists`."""
    return np.concatenate([part[:-1] for part in parts]) + np.repeat(np.array(bases, dtype=np.int64), counts)


@dataclass(frozen=True, slots=True)
class RowIndex:
    """The rows of each chunk.

    Attributes:
        first_row: int64 (k + 1,), number of rows that begin before each chunk.
        continues: bool (k + 1,), whether each chunk begins within a row.
    """

    first_row: Int64s
    continues: NDArray[np.bool_]

    def chunk_of(self, rows: Int64s) -> Int64s:
        """Return the chunk in which each row starts."""
        chunk: Int64s = self.first_row.searchsorted(rows, side="right") - 1
        return chunk

    def chunk_end(self, rows: Int64s) -> Int64s:
        """Return, for each row, the first chunk that does not contain values of earlier rows."""
        chunk = np.minimum(self.first_row.searchsorted(rows, side="right") - 1, len(self.first_row) - 1)
        inside = (self.first_row[chunk] < rows) | self.continues[chunk]
        end: Int64s = np.minimum(chunk + inside, len(self.first_row) - 1)
        return end


def parse_rep_index(data: Bytes, depth: int, num_chunks: int, num_rows: int, where: str) -> RowIndex:
    """Parse the repetition index of a page.

    Raises:
        CorruptError: The index does not list each chunk, or does not add up to the rows of the page.
    """
    words = depth + 1
    if len(data) != 8 * words * num_chunks:
        expected = f"{8 * words * num_chunks} bytes for {num_chunks} chunks"
        raise CorruptError("the repetition index has the wrong size", where=where, expected=expected, found=len(data))
    table = np.frombuffer(data.tobytes(), dtype="<u8").reshape(num_chunks, words)
    if len(table) and int(table[:, 0].max()) > num_rows:
        raise CorruptError(
            "a chunk in the repetition index has more rows than the page",
            where=where,
            expected=f"at most {num_rows}",
            found=int(table[:, 0].max()),
        )
    trailer = table[:, 1] > 0
    continues = np.zeros(num_chunks + 1, dtype=np.bool_)
    continues[1:] = trailer
    begins = table[:, 0].astype(np.int64) + trailer - continues[:-1]
    first_row = np.zeros(num_chunks + 1, dtype=np.int64)
    np.cumsum(begins, out=first_row[1:])
    if (len(begins) and int(begins.min()) < 0) or first_row[-1] != num_rows or continues[-1]:
        raise CorruptError(
            "the repetition index does not add up to the rows of the page",
            where=where,
            expected=num_rows,
            found=int(first_row[-1]),
        )
    return RowIndex(first_row, continues)
