"""Miniblock layout: a page of small values, cut into chunks of a few KiB that are decoded as a whole.

page buffer | content
0           | chunk table: see `encoding.chunks`
1           | chunks
2           | dictionary, when values are indices into one
last        | repetition index, when there are lists: see `encoding.rep_index`
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_duck.encoding.block import Block, Dictionary, FixedWidth
from lance_duck.encoding.chunks import ChunkShape, ChunkTable, Int64s, ParsedChunks, parse_chunk_table, parse_chunks
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.layers import Layers
from lance_duck.encoding.levels import decode_level_chunks
from lance_duck.encoding.page import Leaf, Levels, Page, Rows
from lance_duck.encoding.rep_index import RowIndex, parse_rep_index
from lance_duck.encoding.rows import check_rows, expand_ranges, runs, slice_bounds
from lance_duck.encoding.take import slice_block, take
from lance_duck.errors import CorruptError
from lance_duck.store.request import Bytes, Request


@dataclass(frozen=True, slots=True)
class MiniBlockLayout:
    """Description of a miniblock page.

    Attributes:
        layers: Meaning of the levels.
        shape: What the chunk headers hold.
        rep: Codec of the repetition levels, or None.
        def_: Codec of the definition levels, or None.
        values: Codec of the values.
        dictionary: Codec of the dictionary, or None.
        num_dictionary_items: Values in the dictionary.
        num_items: Value slots in the page.
        rep_index_depth: 0 when there is no repetition index.
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
class _State:
    """What is read once: chunk table, repetition index, dictionary."""

    table: ChunkTable
    index: RowIndex | None
    dictionary: Block | None


@dataclass(frozen=True, slots=True)
class _Decoded:
    """Some chunks, decoded, one after the other.

    Attributes:
        levels: int64 (chunks + 1,), levels before each chunk.
    """

    block: Block
    rep: Levels | None
    def_: Levels | None
    levels: Int64s


class MiniBlockReader:
    """Reads a miniblock page."""

    def __init__(self, page: Page, layout: MiniBlockLayout) -> None:
        if not layout.layers.max_rep and layout.num_items != page.num_rows:
            raise CorruptError("items of the page", where=page.where, expected=page.num_rows, found=layout.num_items)
        self._page = page
        self._layout = layout
        self._state: _State | None = None

    @property
    def num_rows(self) -> int:
        """Rows of the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Whether values are indices into a dictionary."""
        return self._layout.dictionary is not None

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows: one range for each run of adjacent chunks that hold them."""
        count = check_rows(rows, self.num_rows)
        state = self._state
        if state is None:
            state = yield from self._load()
        if count == 0:
            rows = slice(0, 0)
        if state.index is not None:
            return (yield from self._read_nested(rows, count, state, state.index))
        return (yield from self._read_flat(rows, count, state))

    def _load(self) -> Request[_State]:
        page, layout = self._page, self._layout
        wanted = [page.byte_range(0)]
        if layout.dictionary is not None:
            wanted.append(page.byte_range(2))
        if layout.layers.max_rep:
            wanted.append(page.byte_range(len(page.buffers) - 1))
        found = yield wanted
        table = parse_chunk_table(found[0], layout.shape.large, layout.num_items, page.buffer_size(1), page.where)
        dictionary = None
        if layout.dictionary is not None:
            dictionary = layout.dictionary.decode_block(found[1], layout.num_dictionary_items)
            if dictionary.count == 0:
                raise CorruptError("dictionary without values", where=page.where)
        index = None
        if layout.layers.max_rep:
            index = parse_rep_index(found[-1], layout.rep_index_depth, table.num_chunks, page.num_rows, page.where)
        self._state = _State(table, index, dictionary)
        return self._state

    def _read_flat(self, rows: Rows, count: int, state: _State) -> Request[Leaf]:
        table = state.table
        if isinstance(rows, slice):
            start, stop = slice_bounds(rows)
            first = int(np.searchsorted(table.items, start, side="right")) - 1
            last = max(first, int(np.searchsorted(table.items, stop, side="left")))
            chunks = np.arange(first, last, dtype=np.int64) if count else np.empty(0, dtype=np.int64)
            decoded = yield from self._decode(chunks, state)
            base = int(table.items[first])
            block = slice_block(decoded.block, start - base, stop - base) if count else decoded.block
            def_ = None if decoded.def_ is None else decoded.def_[start - base : stop - base]
            return Leaf(block, None, def_, self._layout.layers, count, count)
        chunk_of_row = np.searchsorted(table.items, rows, side="right") - 1
        is_first = np.append(True, chunk_of_row[1:] != chunk_of_row[:-1])
        chunks = chunk_of_row[is_first]
        decoded = yield from self._decode(chunks, state)
        sizes = table.items[chunks + 1] - table.items[chunks]
        bases = np.cumsum(sizes) - sizes - table.items[chunks]
        places = rows + bases[np.cumsum(is_first) - 1]
        def_ = None if decoded.def_ is None else decoded.def_[places]
        return Leaf(take(decoded.block, places), None, def_, self._layout.layers, count, count)

    def _read_nested(self, rows: Rows, count: int, state: _State, index: RowIndex) -> Request[Leaf]:
        bounds = np.array(slice_bounds(rows), dtype=np.int64) if isinstance(rows, slice) else rows
        begin = index.chunk_of(bounds)
        if isinstance(rows, slice):
            end = index.chunk_end(bounds)
            chunks = np.arange(begin[0], end[1], dtype=np.int64) if count else np.empty(0, dtype=np.int64)
        else:
            end = index.chunk_end(bounds + 1)
            marks = np.zeros(state.table.num_chunks + 1, dtype=np.int64)
            np.add.at(marks, begin, 1)
            np.subtract.at(marks, end, 1)
            chunks = np.flatnonzero(np.cumsum(marks[:-1]))
        decoded = yield from self._decode(chunks, state)
        starts, stops = self._row_levels(rows, chunks, decoded, index)
        return self._choose_levels(decoded, starts, stops, count)

    def _row_levels(self, rows: Rows, chunks: Int64s, decoded: _Decoded, index: RowIndex) -> tuple[Int64s, Int64s]:
        """Ranges of levels: one for all rows of a slice, else one a row."""
        assert decoded.rep is not None
        heads = np.flatnonzero(decoded.rep == self._layout.layers.max_rep)
        begins = index.first_row[chunks + 1] - index.first_row[chunks]
        if not np.array_equal(np.diff(np.searchsorted(heads, decoded.levels)), begins):
            raise CorruptError("repetition levels do not match the repetition index", where=self._page.where)
        heads = np.append(heads, decoded.levels[-1])
        if len(chunks) == 0:
            return np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        if isinstance(rows, slice):
            bounds = np.array(slice_bounds(rows), dtype=np.int64) - index.first_row[chunks[0]]
            places = heads[np.minimum(bounds, len(heads) - 1)]
            return places[:1], places[1:]
        chunk = index.chunk_of(rows)
        place = np.searchsorted(chunks, chunk)
        head = (np.cumsum(begins) - begins)[place] + rows - index.first_row[chunk]
        last = np.searchsorted(chunks, index.chunk_end(rows + 1) - 1)
        return heads[head], np.minimum(heads[head + 1], decoded.levels[last + 1])

    def _choose_levels(self, decoded: _Decoded, starts: Int64s, stops: Int64s, count: int) -> Leaf:
        layers = self._layout.layers
        rep, def_ = decoded.rep, decoded.def_
        assert rep is not None
        if len(starts) == 1:
            start, stop = int(starts[0]), int(stops[0])
            before, slots = start, stop - start
            if def_ is not None:
                visible = def_ <= layers.max_visible
                before = int(np.count_nonzero(visible[:start]))
                slots = int(np.count_nonzero(visible[start:stop]))
                def_ = def_[start:stop]
            return Leaf(slice_block(decoded.block, before, before + slots), rep[start:stop], def_, layers, slots, count)
        chosen = expand_ranges(starts, stops)
        items = chosen
        if def_ is not None:
            visible = def_ <= layers.max_visible
            items = (np.cumsum(visible) - 1)[chosen][visible[chosen]]
            def_ = def_[chosen]
        return Leaf(take(decoded.block, items), rep[chosen], def_, layers, len(items), count)

    def _decode(self, chunks: Int64s, state: _State) -> Request[_Decoded]:
        """Fetch and decode chunks, in ascending order."""
        table = state.table
        begin, end = table.offsets[chunks], table.offsets[chunks + 1]
        data: Bytes
        if len(chunks):
            first, last = runs(chunks)
            ranges = zip(table.offsets[first].tolist(), table.offsets[last + 1].tolist(), strict=True)
            found = yield [self._page.byte_range(1, a, b - a) for a, b in ranges]
            data = found[0] if len(found) == 1 else np.concatenate(found)
        else:
            data = np.empty(0, dtype=np.uint8)
        sizes = end - begin
        items = table.items[chunks + 1] - table.items[chunks]
        parsed = parse_chunks(data, np.cumsum(sizes) - sizes, sizes, items, self._layout.shape, self._page.where)
        return self._decode_parsed(parsed, items, state.dictionary)

    def _decode_parsed(self, parsed: ParsedChunks, items: Int64s, dictionary: Block | None) -> _Decoded:
        layout, where = self._layout, self._page.where
        rep = def_ = None
        counts = items
        if parsed.rep is not None and layout.rep is not None:
            counts = parsed.rep.counts
            rep = decode_level_chunks(layout.rep, parsed.rep, layout.layers.max_rep, where)
        if parsed.def_ is not None and layout.def_ is not None:
            counts = parsed.def_.counts
            def_ = decode_level_chunks(layout.def_, parsed.def_, layout.layers.max_def, where)
        if rep is None and not np.array_equal(counts, items):
            raise CorruptError("levels in a chunk", where=where, expected="one for each item")
        if rep is not None:
            slots = len(rep) if def_ is None else int(np.count_nonzero(def_ <= layout.layers.max_visible))
            if slots != int(items.sum()):
                raise CorruptError("visible levels", where=where, expected=f"{int(items.sum())} items", found=slots)
        block = layout.values.decode_chunks(parsed.values)
        if dictionary is not None:
            block = self._lookup(block, dictionary, def_)
        return _Decoded(block, rep, def_, np.append(np.int64(0), np.cumsum(counts)))

    def _lookup(self, block: Block, dictionary: Block, def_: Levels | None) -> Dictionary:
        """Check indices against the dictionary; those of null slots may be anything."""
        if not isinstance(block, FixedWidth) or block.bits not in (8, 16, 32, 64):
            raise CorruptError("dictionary indices", where=self._page.where, expected="unsigned integers")
        indices = block.data.view(f"<u{block.bits // 8}")
        if len(indices) and int(indices.max()) >= dictionary.count:
            wild = indices >= dictionary.count
            if def_ is not None:
                visible = def_[def_ <= self._layout.layers.max_visible]
                wild_and_valid = wild & (visible == 0)
            else:
                wild_and_valid = wild
            if wild_and_valid.any():
                raise CorruptError(
                    "dictionary index", where=self._page.where, expected=f"< {dictionary.count}", found=indices.max()
                )
            indices = np.where(wild, 0, indices).astype(indices.dtype)
        return Dictionary(indices, dictionary)
