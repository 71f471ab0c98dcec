"""Full-zip layout: a page of large values. Each value is stored with its levels, so a row is one range of bytes.

    page buffer | content
    0           | entries, one after the other
    1           | row index, when values differ in size or there are lists: rows + 1 offsets of 1, 2, 4 or 8 bytes

An entry, little-endian:

    size         | field
    0, 1, 2 or 4 | control word (rep << bits_def) | def; its size is the smallest that holds bits_rep + bits_def
    4 or 8       | length of the value, only when values differ in size and def is 0
    any          | value: fixed width, in each entry with a slot; or as many bytes as the length before it
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.fixed_size_list import has_item_validity
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.page import Leaf, Levels, Page, Rows
from lance_duck.encoding.layouts.page_rows import adjacent_runs, check_rows, slice_bounds
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.numbers.flat import join_bytes
from lance_duck.kernels.pages.unzip_entries import count_entries, split_entries
from lance_duck.kernels.texts.take import gather_fixed
from lance_duck.store.checked import look
from lance_duck.store.request import Bytes, Request, run

Int64s = NDArray[np.int64]
_MEMORY_PAGE = 4096


@dataclass(frozen=True, slots=True)
class FullZipLayout:
    """Description of a full-zip page.

    Attributes:
        layers: Meaning of the levels.
        bits_rep: Bits of a repetition level, or 0 without them.
        bits_def: Bits of a definition level, or 0 without them.
        width: Bytes of a value, or of its length if values differ in size.
        is_fixed: Whether all values have the same width.
        values: Codec of the values.
        num_items: Number of entries in the page.
        num_visible_items: Number of slots in the page.
    """

    layers: Layers
    bits_rep: int
    bits_def: int
    width: int
    is_fixed: bool
    values: Codec
    num_items: int
    num_visible_items: int

    @property
    def control(self) -> int:
        """Size of a control word, in bytes."""
        bits = self.bits_rep + self.bits_def
        return 0 if bits == 0 else 1 if bits <= 8 else 2 if bits <= 16 else 4

    @property
    def form(self) -> Int64s:
        """Description of the entries for the kernels."""
        max_def = self.layers.max_def if self.bits_def else 0
        max_rep = self.layers.max_rep if self.bits_rep else 0
        return np.array(
            [self.control, self.bits_def, max_rep, max_def, self.layers.max_visible, self.width, self.is_fixed],
            dtype=np.int64,
        )


class FullZipReader:
    """A reader of a full-zip page."""

    def __init__(self, page: Page, layout: FullZipLayout) -> None:
        self._page = page
        self._layout = layout
        self._indexed = bool(layout.layers.max_rep) or not layout.is_fixed
        self._offsets: Int64s | None = None
        if not layout.layers.max_rep and layout.num_items != page.num_rows:
            raise CorruptError(
                "the item count of the page differs from its row count",
                where=page.where,
                expected=page.num_rows,
                found=layout.num_items,
            )
        stride = layout.control + layout.width
        if not self._indexed and page.buffer_size(0) != page.num_rows * stride:
            expected = f"{page.num_rows} entries of {stride} bytes"
            raise CorruptError(
                "the entries do not fill the page",
                where=page.where,
                expected=expected,
                found=f"{page.buffer_size(0)} bytes",
            )

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Always False: large values are not stored in dictionaries."""
        return False

    @property
    def is_prepared(self) -> bool:
        """Whether the row index was read. True for pages without a row index."""
        return not self._indexed or self._offsets is not None

    @property
    def has_levels(self) -> bool:
        """Whether the layers of the page have definition levels."""
        return self._layout.layers.max_def > 0

    @property
    def has_item_validity(self) -> bool:
        """Whether the value codec stores which items of fixed-size lists are null."""
        return has_item_validity(self._layout.values)

    def read_points(self, rows: NDArray[np.int64]) -> Leaf | None:
        """Read a few rows: see `PageReader.read_points`."""
        layout, page = self._layout, self._page
        if self._indexed and not layout.layers.max_rep:
            return self._read_sized_points(rows, run(self._load()) if self._offsets is None else self._offsets)
        if self._indexed or layout.control or not layout.width:
            return None
        check_rows(rows, self.num_rows)
        offset, size = page.buffers[0]
        touched = len(rows) * max(layout.width, _MEMORY_PAGE)
        data = look(
            page.source, offset, size, touched, rows, lambda some: (some * layout.width, (some + 1) * layout.width)
        )
        out = np.empty(len(rows) * layout.width, np.uint8)
        gather_fixed(readonly(data), rows * layout.width, layout.width, out)
        return self._leaf(FixedWidth(layout.width * 8, out, len(rows)), None, None, len(rows), len(rows))

    def read_values(self, rows: NDArray[np.int64]) -> list[Bytes] | None:
        """Return the bytes of each of a few rows, separately: see `PageReader.read_points`.

        Returns:
            uint8 arrays, or None if the page has nulls, lists or fixed-width values, or if its codec cannot decode
            single values.
        """
        layout = self._layout
        is_compressed = isinstance(layout.values, General) and isinstance(layout.values.inner, Variable)
        if layout.is_fixed or layout.layers.max_rep or layout.control:
            return None
        if not (is_compressed or isinstance(layout.values, Variable)):
            return None
        check_rows(rows, self.num_rows)
        offsets = run(self._load()) if self._offsets is None else self._offsets
        begins, ends = offsets[rows].tolist(), offsets[rows + 1].tolist()
        offset, size = self._page.buffers[0]
        touched = sum(ends) - sum(begins) + len(rows) * _MEMORY_PAGE
        data = look(self._page.source, offset, size, touched, rows, lambda some: (offsets[some], offsets[some + 1]))
        values = []
        for begin, end in zip(begins, ends, strict=True):
            first = begin + layout.width
            if first > end or int.from_bytes(data[begin:first].tobytes(), "little") != end - first:
                raise CorruptError("the stored length of a value is wrong", where=self._page.where)
            value = data[first:end]
            values.append(layout.values.decompress(value) if isinstance(layout.values, General) else value)
        return values

    def read_lists(self, rows: NDArray[np.int64]) -> tuple[Bytes, Int64s, Int64s] | None:
        """Return the lists of values of a few rows: see `PageReader.read_points`.

        Returns:
            The bytes of all values, the start of each value and the end of the last value, and the number of the first
            value of each row, followed by the total number of values. Returns None unless rows are lists of values that
            differ in size, without nulls or empty lists, in a codec that can decode single values.
        """
        layout = self._layout
        if layout.is_fixed or layout.layers.max_rep != 1 or layout.layers.max_def or layout.bits_def:
            return None
        if not isinstance(layout.values, Variable):
            return None
        check_rows(rows, self.num_rows)
        offsets = run(self._load()) if self._offsets is None else self._offsets
        if len(rows) == 1:
            offset, size = self._page.buffers[0]
            begin, end = offsets[rows[0] : rows[0] + 2].tolist()
            touched = end - begin + _MEMORY_PAGE
            data = look(self._page.source, offset, size, touched, rows, lambda some: (offsets[some], offsets[some + 1]))
            entries = data[begin:end]
        else:
            entries = self._joined(rows, offsets)
        rep, _, bounds, values = self._unzip(entries, len(rows))
        return values, bounds, np.append(np.flatnonzero(rep), len(rep))

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows: one range of bytes for each run of adjacent rows."""
        count = check_rows(rows, self.num_rows)
        offsets = self._offsets
        if self._indexed and offsets is None:
            offsets = yield from self._load()
        if isinstance(rows, slice):
            start, stop = slice_bounds(rows)
            first, last = np.array([start], dtype=np.int64), np.array([stop], dtype=np.int64)
        elif count:
            first, last = adjacent_runs(rows)
            last = last + 1
        if count == 0:
            return self._split(np.empty(0, dtype=np.uint8), 0)
        if offsets is None:
            stride = self._layout.control + self._layout.width
            begin, end = first * stride, last * stride
        else:
            begin, end = offsets[first], offsets[last]
        pieces = yield [self._page.byte_range(0, a, b - a) for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        data = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return self._split(data, count)

    def _read_sized_points(self, rows: NDArray[np.int64], offsets: Int64s) -> Leaf:
        """Read a few rows whose values differ in size."""
        check_rows(rows, self.num_rows)
        return self._split(self._joined(rows, offsets), len(rows))

    def _joined(self, rows: NDArray[np.int64], offsets: Int64s) -> Bytes:
        """Return the concatenated entries of a few rows."""
        offset, size = self._page.buffers[0]
        begins, ends = offsets[rows], offsets[rows + 1]
        sizes = ends - begins
        total = int(sizes.sum())
        touched = total + len(rows) * _MEMORY_PAGE
        data = look(self._page.source, offset, size, touched, rows, lambda some: (offsets[some], offsets[some + 1]))
        entries = unset(total, np.uint8)
        join_bytes(readonly(data), begins, sizes, entries)
        return entries

    def _load(self) -> Request[Int64s]:
        page = self._page
        size = page.buffer_size(1)
        width = size // (self.num_rows + 1)
        if width not in (1, 2, 4, 8) or size != width * (self.num_rows + 1):
            raise CorruptError(
                "the row index has the wrong size",
                where=page.where,
                expected=f"{self.num_rows + 1} offsets",
                found=f"{size} bytes",
            )
        (data,) = yield [page.byte_range(1)]
        raw = np.frombuffer(data.tobytes(), dtype=f"<u{width}")
        end = page.buffer_size(0)
        if int(raw.max()) > end or np.any(raw[1:] < raw[:-1]):
            raise CorruptError(
                "the offsets of the row index are invalid",
                where=page.where,
                expected=f"ascending offsets, at most {end}",
            )
        self._offsets = raw.astype(np.int64)
        return self._offsets

    def _split(self, data: Bytes, count: int) -> Leaf:
        layout = self._layout
        if layout.control == 0 and layout.is_fixed:
            return self._leaf(FixedWidth(layout.width * 8, data, count), None, None, count, count)
        if not layout.layers.max_rep and layout.is_fixed:
            return self._split_fixed(data, count)
        rep, def_, offsets, values = self._unzip(data, count)
        block: Block
        if layout.is_fixed:
            slots = len(values) // layout.width
            block = FixedWidth(layout.width * 8, values, slots)
        else:
            slots = len(offsets) - 1
            block = VariableWidth(offsets.astype(np.int32) if len(values) <= MAX_INT32 else offsets, values)
        return self._leaf(block, rep if layout.bits_rep else None, def_ if layout.bits_def else None, slots, count)

    def _unzip(self, data: Bytes, count: int) -> tuple[Levels, Levels, Int64s, Bytes]:
        """Split the entries of rows into repetition levels, definition levels, offsets and value bytes.

        Levels that the page does not have are empty, as are the offsets of fixed-width values.
        """
        layout, form = self._layout, self._layout.form
        totals = np.zeros(4, dtype=np.int64)
        data = readonly(data)
        status = count_entries(data, form, totals)
        if status:
            problem = "the bytes end inside an entry" if status == 1 else "the level of an entry is too high"
            raise CorruptError(problem, where=self._page.where)
        entries, slots, size, heads = totals.tolist()
        if heads != count:
            raise CorruptError(
                "the number of rows that the entries begin is wrong",
                where=self._page.where,
                expected=count,
                found=heads,
            )
        rep = unset(entries if layout.bits_rep else 0, np.uint8)
        def_ = unset(entries if layout.bits_def else 0, np.uint8)
        offsets = np.zeros(0 if layout.is_fixed else slots + 1, dtype=np.int64)
        values = unset(size, np.uint8)
        split_entries(data, form, rep, def_, offsets, values)
        if layout.bits_rep and count and rep[0] != layout.layers.max_rep:
            raise CorruptError("the first entry does not begin a row", where=self._page.where)
        return rep, def_, offsets, values

    def _split_fixed(self, data: Bytes, count: int) -> Leaf:
        """Split entries of one size. Without lists, each entry has a slot."""
        layout = self._layout
        entries = data.reshape(count, layout.control + layout.width)
        words = np.ascontiguousarray(entries[:, : layout.control]).view(f"<u{layout.control}").reshape(count)
        if count and int(words.max()) > layout.layers.max_def:
            raise CorruptError("the level of an entry is too high", where=self._page.where, found=int(words.max()))
        values = np.ascontiguousarray(entries[:, layout.control :]).reshape(-1)
        return self._leaf(FixedWidth(layout.width * 8, values, count), None, words.astype(np.uint8), count, count)

    def _leaf(self, block: Block, rep: Levels | None, def_: Levels | None, slots: int, count: int) -> Leaf:
        values = self._layout.values.decode_values(block)
        return Leaf(values, rep, def_, self._layout.layers, slots, count)
