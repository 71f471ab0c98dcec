"""Decodes several pages of the same layout as one.

Small pages that are read whole are joined into one large page. Pages with lists are joined from the chunks that contain
requested rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.layouts.chunk_decoder import MiniBlockLayout, decode_levels_of, decode_values
from lance_duck.encoding.layouts.chunks import parse_chunks
from lance_duck.encoding.layouts.miniblock import MiniBlockReader, joined_lists
from lance_duck.encoding.layouts.page import Leaf, Page, Rows
from lance_duck.errors import CorruptError
from lance_duck.store.request import ByteRange, Bytes, Request

Int64s = NDArray[np.int64]


def decoding_key(layout: MiniBlockLayout | None) -> object | None:
    """Return a key that is equal for pages that can be decoded together.

    Returns None if the page must be decoded alone: levels of lists cross pages, and dictionaries belong to one page.
    """
    if layout is None or layout.rep is not None or layout.dictionary is not None or not layout.layers.is_flat:
        return None
    return layout.layers, layout.shape, layout.def_, layout.values


def read_alike(pages: Sequence[Page], layouts: Sequence[MiniBlockLayout]) -> Request[Leaf | None]:
    """Read all rows of pages with the same layout from one source in memory.

    Args:
        pages: The pages. At least one is required.
        layouts: The layout of each page. All have the same `decoding_key`.

    Returns:
        The rows, or None if a page contradicts itself. Read the pages one by one to get the error.

    Raises:
        CorruptError: A page is corrupt. Reading the page separately raises the same error.
    """
    layout, first = layouts[0], pages[0]
    width = 4 if layout.shape.large else 2
    places = np.array([page.buffers[0] + page.buffers[1] for page in pages if len(page.buffers) > 1], np.int64)
    counts = np.array([page.num_rows for page in pages], np.int64)
    if len(places) != len(pages) or [each.num_items for each in layouts] != counts.tolist():
        return None
    (data,) = yield [ByteRange(first.source, 0, first.source.size)]
    chunks = _chunks(data, places, counts, width)
    if chunks is None:
        return None
    parsed = parse_chunks(data, *chunks, layout.shape, first.where)
    levels = decode_levels_of(parsed, layout, first.where)
    block = decode_values(parsed, layout, None, levels.def_, first.where)
    rows = int(counts.sum())
    return Leaf(block, None, levels.def_, layout.layers, rows, rows)


def _chunks(data: Bytes, places: Int64s, rows: Int64s, width: int) -> tuple[Int64s, Int64s, Int64s] | None:
    """Return the start, size and row count of each chunk: `parse_chunk_table` of all pages at once.

    Args:
        data: Bytes that hold the pages.
        places: (n, 4): position and size of each page's chunk table, then position and size of its chunks.
        rows: (n,), rows of each page.
        width: Bytes of a word of a chunk table.

    Returns:
        int64 (k,) each, or None if a chunk table does not fit its page.
    """
    tables, table_sizes, starts, sizes = places.T
    if np.any(table_sizes % width) or np.any(table_sizes == 0):
        return None
    num_chunks = table_sizes // width
    first_chunk = np.cumsum(num_chunks) - num_chunks
    last_chunk = first_chunk + num_chunks - 1
    page = np.repeat(np.arange(len(rows)), num_chunks)
    words_at = tables[page] + (np.arange(len(page)) - first_chunk[page]) * width
    words = np.ascontiguousarray(data[words_at[:, None] + np.arange(width)]).view(f"<u{width}")[:, 0].astype(np.int64)
    chunk_sizes = ((words >> 4) + 1) * 8
    before = np.cumsum(chunk_sizes) - chunk_sizes
    counts = np.int64(1) << (words & 15)
    counts[last_chunk] = 0
    counts[last_chunk] = rows - np.add.reduceat(counts, first_chunk)
    if np.any(np.add.reduceat(chunk_sizes, first_chunk) != sizes) or np.any(counts[last_chunk] < 0):
        return None
    return starts[page] + before - before[first_chunk][page], chunk_sizes, counts


def read_lists(readers: Sequence[MiniBlockReader], rows: Sequence[Rows]) -> Request[Leaf | None]:
    """Read rows of adjacent pages with lists.

    Args:
        readers: Page readers of one source with the same `lists_key`.
        rows: The rows of each page, relative to its start. Either all are arrays of offsets, or all are slices. Each
            slice must reach the end of its page, and the next slice must start at the beginning of the next page.

    Returns:
        The rows, or None if a page contradicts itself. Read the pages one by one to get the error.
    """
    before = np.cumsum([0, *(reader.num_rows for reader in readers[:-1])]).tolist()
    selection: Rows
    if isinstance(rows[0], slice):
        selection = slice(rows[0].start, before[-1] + rows[-1].stop)  # type: ignore[union-attr]
    else:
        selection = np.concatenate([part + base for part, base in zip(rows, before, strict=True)])
    try:
        joined = yield from joined_lists(readers)
        return (yield from joined.read(selection))
    except CorruptError:
        return None
