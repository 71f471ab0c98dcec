"""One physical column of a 2.1 or 2.2 file, whose pages are read together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.memory import unset
from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.encoding.block import Block, FixedWidth, PackedStruct
from lance_duck.encoding.layouts.alike import decoding_key, read_alike, read_lists
from lance_duck.encoding.layouts.assemble import LevelEntries, Structure
from lance_duck.encoding.layouts.blob import read_blobs, read_extents
from lance_duck.encoding.layouts.chunk_decoder import MiniBlockLayout
from lance_duck.encoding.layouts.fullzip import FullZipReader
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.miniblock import MiniBlockReader
from lance_duck.encoding.layouts.page import Leaf, Levels, Page, PageReader, Rows
from lance_duck.encoding.layouts.page_rows import expand_ranges, slice_bounds
from lance_duck.encoding.layouts.structural import known_layout, open_page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.file.reader import LanceFile
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.pages.assemble import fold_items, map_levels
from lance_duck.store.costs import COALESCED_GAP
from lance_duck.store.request import Bytes, Request, gather, read_first
from lance_duck.wire.schema import BLOB_V1_SCAN, BLOB_V2_SCAN

if TYPE_CHECKING:
    from lance_duck.encoding.arrow import jsonb
    from lance_duck.file.blobs import places
else:
    jsonb = lazy.modules(globals(), "lance_duck.encoding.arrow", "jsonb")
    places = lazy.modules(globals(), "lance_duck.file.blobs", "places")

_MAX_ROWS = 1 << 48
_NO_LEVELS = np.empty(0, dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class LeafValues:
    """Rows of a physical column.

    Attributes:
        values: One value for each slot of the innermost layer.
        entries: Full levels of all entries of the rows: see `encoding.layouts.layers`.
    """

    values: pa.Array
    entries: LevelEntries


class LeafColumn:
    """A reader of a physical column.

    Args:
        file: The file.
        column: Index of the physical column.
        structure: Layers of the column, according to the schema.
        num_rows: Number of rows that the column must have.
        arrow_type: Storage type of the returned arrays.
        stored: Storage type of the values in the file.
        is_json: Whether the values are JSONB to return as text.
    """

    def __init__(
        self,
        file: LanceFile,
        column: int,
        structure: Structure,
        num_rows: int,
        arrow_type: pa.DataType,
        stored: pa.DataType | None = None,
        is_json: bool = False,
    ) -> None:
        self._file = file
        self._source = file.source
        self._where = f"{file.source.path}: column {column}"
        self.structure = structure
        self._arrow_type = arrow_type
        self._stored = stored
        self._is_json = is_json
        self._plain_bits = _plain_bits(arrow_type)
        self._narrow = bool(pa.types.is_decimal(arrow_type) and arrow_type.bit_width <= 64)
        self._stride = structure.strides[-1]
        if self._stride == 0:
            raise UnsupportedError("fixed-size lists of zero structs are not supported", where=self._where)
        if self._stride != 1 and structure.max_rep:
            raise UnsupportedError(
                "one column cannot nest both lists and fixed-size lists of structs", where=self._where
            )
        self._pages = file.column(column).pages
        self._readers: list[PageReader | None] = [None] * len(self._pages)
        self._is_plain = structure.lists == (False,) and self._stride == 1 and not file.source.remote
        total = sum(page.num_rows for page in self._pages)
        if total > _MAX_ROWS:
            raise CorruptError(
                "wrong row count in the pages", where=self._where, expected=f"<= {_MAX_ROWS}", found=total
            )
        if total != num_rows * self._stride or any(page.num_rows % self._stride for page in self._pages):
            raise CorruptError(
                "wrong row count in the pages", where=self._where, expected=num_rows * self._stride, found=total
            )
        self._first = np.zeros(len(self._pages) + 1, dtype=np.int64)
        np.cumsum([page.num_rows for page in self._pages], out=self._first[1:])

    def is_dictionary(self) -> bool:
        """Return whether every page is dictionary-encoded."""
        return bool(self._pages) and all(self._reader(i).is_dictionary for i in range(len(self._pages)))

    def has_no_nulls(self) -> bool:
        """Return whether the page descriptions rule out null slots."""
        return not any(self._reader(i).has_levels for i in range(len(self._pages)))

    def has_no_null_items(self) -> bool:
        """Return whether the values are fixed-size lists, and the page descriptions rule out null items."""
        return not any(self._reader(i).has_item_validity for i in range(len(self._pages)))

    def read(self, rows: Rows) -> Request[LeafValues]:
        """Read rows of the column."""
        parts = self._split(self._scale(rows))
        leaves = None
        if self.structure.max_rep and len(parts) > 1 and not self._source.remote:
            leaves = yield from self._read_lists(parts)
        elif self._file.is_in_memory and len(parts) > 1 and sum(map(_length, parts)) == int(self._first[-1]):
            leaves = yield from self._read_alike()
        if leaves is None:
            leaves = yield from gather([self._read_page(page, local) for page, local in parts])
        for leaf in leaves:
            self._check(leaf)
        if pa.types.is_large_binary(self._arrow_type) or pa.types.is_binary(self._arrow_type):
            leaves = yield from gather([self._with_blobs(leaf) for leaf in leaves])
        arrays, first = [], 0
        for leaf in leaves:
            arrays.append(self._values(leaf, rows, first))
            first += leaf.num_slots
        values = pa.nulls(0, self._arrow_type) if not arrays else concatenate(arrays)
        return LeafValues(values, self._entries(leaves))

    def read_points(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Return the values of a few rows immediately, without a request. Returns None if only `read` can read them.

        Args:
            rows: Ascending, at least one.
        """
        if not self._is_plain:
            return None
        arrays, first = [], 0
        for page, local in self._by_page(rows):
            leaf = self._reader(page).read_points(local)
            if leaf is None or not leaf.layers.is_flat or isinstance(leaf.block, PackedStruct):
                return None
            arrays.append(self._values(leaf, rows, first))
            first += len(local)
        return concatenate(arrays)

    def read_values(self, rows: NDArray[np.int64]) -> list[Bytes] | None:
        """Return the values of a few rows, each as a separate byte array.

        Returns None if only `read` can read them, or if they are not stored as separate values.
        """
        if not self._is_plain or self._is_json:
            return None
        values: list[Bytes] = []
        for page, local in self._by_page(rows):
            reader = self._reader(page)
            found = reader.read_values(local) if isinstance(reader, FullZipReader) else None
            if found is None:
                return None
            values += found
        return values

    def read_lists(self, rows: NDArray[np.int64]) -> tuple[Bytes, NDArray[np.int64], NDArray[np.int64]] | None:
        """Return a few rows of binary or string lists: see `FullZipReader.read_lists` and `read_points`."""
        if self.structure.lists != (False, True) or self._source.remote or self._is_json:
            return None
        parts = []
        for page, local in self._by_page(rows):
            reader = self._reader(page)
            found = reader.read_lists(local) if isinstance(reader, FullZipReader) else None
            if found is None:
                return None
            parts.append(found)
        if len(parts) == 1:
            return parts[0]
        values, bounds, lists = zip(*parts, strict=True)
        return np.concatenate(values), _joined_bounds(bounds), _joined_bounds(lists)

    def _read_alike(self) -> Request[list[Leaf] | None]:
        """Read all pages, and decode adjacent equally encoded pages together. Returns None if few can be joined."""
        layouts = [self._layout(page) for page in self._pages]
        runs = [[*run] for _, run in groupby(range(len(self._pages)), lambda place: decoding_key(layouts[place]))]
        if 2 * len(runs) > len(self._pages):
            return None
        leaves: list[Leaf] = []
        for run in runs:
            alike = [
                layout for place in run if (layout := layouts[place]) is not None and decoding_key(layout) is not None
            ]
            leaf = (yield from read_alike([self._pages[place] for place in run], alike)) if alike else None
            if leaf is not None:
                leaves.append(leaf)
                continue
            for place in run:
                rows = slice(0, self._pages[place].num_rows)
                leaves.append((yield from self._reader(place).read(rows)))
        return leaves

    def _read_lists(self, parts: list[tuple[int, Rows]]) -> Request[list[Leaf] | None]:
        """Read rows of list pages, joining pages like `_read_alike`. Returns None if most cannot be joined."""
        readers = [self._reader(page) for page, _ in parts]
        keys = [reader.lists_key if isinstance(reader, MiniBlockReader) else None for reader in readers]
        runs = [[*run] for _, run in groupby(range(len(parts)), keys.__getitem__)]
        if 2 * len(runs) > len(parts):
            return None
        leaves: list[Leaf] = []
        for run in runs:
            lists = [reader for place in run if isinstance(reader := readers[place], MiniBlockReader)]
            is_alike = len(run) > 1 and keys[run[0]] is not None
            leaf = (yield from read_lists(lists, [parts[place][1] for place in run])) if is_alike else None
            if leaf is not None:
                leaves.append(leaf)
            else:
                leaves += yield from gather([self._read_page(*parts[place]) for place in run])
        return leaves

    def _layout(self, page: Page) -> MiniBlockLayout | None:
        layout = known_layout(page, narrow=self._narrow)
        if layout is None:
            open_page(page, narrow=self._narrow)
            layout = known_layout(page, narrow=self._narrow)
        return layout

    def _with_blobs(self, leaf: Leaf) -> Request[Leaf]:
        """Replace the blob descriptions in a leaf by the bytes of the blobs."""
        if not isinstance(leaf.block, PackedStruct):
            return leaf
        if len(leaf.block.fields) == BLOB_V1_SCAN.num_fields:
            block = yield from read_blobs(leaf.block, self._source, self._where)
            return replace(leaf, block=block)
        self._check_count(leaf.block, leaf)
        descriptions = block_to_arrow(leaf.block, BLOB_V2_SCAN, self._valid(leaf), self._where)
        inline = places.inline_extents(descriptions)
        if inline is not None:
            block = yield from read_extents(*inline, self._source, self._where)
            return replace(leaf, block=block)
        parts = yield from places.read_places(places.blob_places(descriptions, self._file))
        return replace(leaf, block=places.as_values(parts))

    def _reader(self, page: int) -> PageReader:
        reader = self._readers[page]
        if reader is None:
            reader = self._readers[page] = open_page(self._pages[page], narrow=self._narrow)
        return reader

    def _read_page(self, page: int, rows: Rows) -> Request[Leaf]:
        """Read rows of a page. Reads the whole page if a second request would cost more than the bytes in between."""
        reader = self._reader(page)
        request = reader.read(rows)
        if not self._source.remote or reader.is_prepared or not _is_most(self._pages[page], rows):
            return request
        whole = self._pages[page]
        return read_first([whole.byte_range(i) for i in range(len(whole.buffers))], request)

    def _scale(self, rows: Rows) -> Rows:
        """Translate rows into slots of the innermost layer, for fixed-size lists of structs."""
        if self._stride == 1:
            return rows
        if isinstance(rows, slice):
            start, stop = slice_bounds(rows)
            return slice(start * self._stride, stop * self._stride)
        return expand_ranges(rows * self._stride, (rows + 1) * self._stride)

    def _split(self, rows: Rows) -> list[tuple[int, Rows]]:
        """Split rows by page, with offsets relative to the page."""
        if isinstance(rows, slice):
            start, stop = slice_bounds(rows)
            first = int(self._first.searchsorted(start, side="right")) - 1
            parts: list[tuple[int, Rows]] = []
            for page in range(first, len(self._pages)):
                base, end = int(self._first[page]), int(self._first[page + 1])
                if base >= stop:
                    break
                if end > start:
                    parts.append((page, slice(max(start, base) - base, min(stop, end) - base)))
            return parts
        return [*self._by_page(rows)]

    def _by_page(self, rows: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        if len(self._pages) == 1:
            return [(0, rows)]
        if len(rows) == 1:
            page = int(self._first.searchsorted(rows[0], side="right")) - 1
            return [(page, rows - self._first[page])]
        cuts = rows.searchsorted(self._first)
        page_numbers = np.flatnonzero(cuts[1:] > cuts[:-1]).tolist()
        return [(page, rows[cuts[page] : cuts[page + 1]] - self._first[page]) for page in page_numbers]

    def _check(self, leaf: Leaf) -> None:
        if leaf.layers.shape() != self.structure.lists:
            raise CorruptError(
                "the layers of a page do not match the schema",
                where=self._where,
                expected=f"{len(self.structure.lists)} layers with {self.structure.max_rep} lists",
                found=f"{len(leaf.layers.kinds)} layers with {leaf.layers.max_rep} lists",
            )

    def _values(self, leaf: Leaf, rows: Rows, first: int) -> pa.Array:
        """Return the values of a leaf. Its first slot is slot `first` of the requested rows."""
        if leaf.block is None:
            return pa.nulls(leaf.num_slots, self._arrow_type)
        self._check_count(leaf.block, leaf)
        if leaf.def_ is None and self._plain_bits and _has_plain(leaf.block, self._plain_bits):
            return pa.Array.from_buffers(self._arrow_type, leaf.block.count, [None, pa.py_buffer(leaf.block.data)])
        block, valid = leaf.block, self._valid(leaf)
        if self._is_json:
            block = jsonb.jsonb_to_text(block, self._where, lambda slot: self._name_slot(rows, first + slot), valid)
        return block_to_arrow(block, self._arrow_type, valid, self._where, self._stored)

    def _name_slot(self, rows: Rows, slot: int) -> str:
        """Describe a slot by its row number, or by its slot number if a row has several slots."""
        if self.structure.max_rep or self._stride != 1:
            return f"value {slot} of the rows read"
        return f"row {_slot_row(rows, slot)}"

    def _check_count(self, block: Block, leaf: Leaf) -> None:
        if block.count != leaf.num_slots:
            raise CorruptError(
                "wrong value count in a page", where=self._where, expected=leaf.num_slots, found=block.count
            )

    def _valid(self, leaf: Leaf) -> Levels | None:
        """Return a flag for each slot. Returns None if all slots are valid."""
        return None if leaf.def_ is None else _slot_flags(leaf.def_, leaf.layers, leaf.num_slots)

    def _entries(self, leaves: list[Leaf]) -> LevelEntries:
        if len(self.structure.lists) == 1:
            return LevelEntries(None, None, sum(leaf.num_slots for leaf in leaves))
        counts = [leaf.num_slots if leaf.def_ is None else len(leaf.def_) for leaf in leaves]
        if self.structure.max_rep:
            counts = [count if leaf.rep is None else len(leaf.rep) for count, leaf in zip(counts, leaves, strict=True)]
        rep = _join([leaf.rep for leaf in leaves], counts, self.structure.max_rep)
        return LevelEntries(rep, _join([_full_def(leaf) for leaf in leaves], counts, 0), sum(counts))


def _slot_row(rows: Rows, slot: int) -> int:
    """Return the row of a slot. Each row must have exactly one slot."""
    return int(slice_bounds(rows)[0] + slot if isinstance(rows, slice) else rows[slot])


def _plain_bits(type_: pa.DataType) -> int:
    """Return the bits of a number type that files store in Arrow's layout; 0 for other types."""
    is_plain = pa.types.is_integer(type_) or pa.types.is_temporal(type_) or type_ in (pa.float32(), pa.float64())
    return int(type_.bit_width) if is_plain and not pa.types.is_interval(type_) else 0


def _has_plain(block: Block, bits: int) -> TypeGuard[FixedWidth]:
    """Return whether a block can back an array of `bits`-wide numbers, without the checks of `block_to_arrow`."""
    return isinstance(block, FixedWidth) and block.bits == bits and 8 * len(block.data) >= block.count * bits


def _joined_bounds(parts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Join the offsets of concatenated arrays. The offsets of each part run from 0 to its length."""
    starts = np.cumsum([0, *(part[-1] for part in parts)])
    return np.concatenate([*(part[:-1] + start for part, start in zip(parts, starts, strict=False)), starts[-1:]])


def _is_most(page: Page, rows: Rows) -> bool:
    """Return whether to read a whole page: a remote read would fetch most of it anyway, or the page is small."""
    size = sum(size for _, size in page.buffers)
    if size <= COALESCED_GAP:
        return isinstance(rows, slice) or len(rows) > 0
    if isinstance(rows, slice):
        first, last = slice_bounds(rows)
        return 4 * (last - first) >= 3 * page.num_rows
    gaps = np.diff(rows)
    left_out = int(gaps[gaps * size > COALESCED_GAP * page.num_rows].sum())
    return len(rows) > 0 and 4 * (int(rows[-1] - rows[0]) - left_out) >= 3 * page.num_rows


def _length(part: tuple[int, Rows]) -> int:
    _, rows = part
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)


def _slot_flags(def_: Levels, layers: Layers, slots: int) -> Levels:
    if layers.max_visible == layers.max_def:
        return np.equal(def_, 0).view(np.uint8)
    flags = unset(len(def_) + 1, np.uint8)
    fold_items(_NO_LEVELS, def_, 0, 0, layers.max_visible, flags)
    return flags[:slots]


def _full_def(leaf: Leaf) -> Levels | None:
    table = None if leaf.def_ is None else leaf.layers.to_full()
    if leaf.def_ is None or table is None:
        return leaf.def_
    full = unset(len(leaf.def_), np.uint8)
    map_levels(readonly(leaf.def_), table, full)
    return full


def _join(parts: list[Levels | None], counts: list[int], fill: int) -> Levels | None:
    if all(part is None for part in parts):
        return np.full(sum(counts), fill, dtype=np.uint8) if fill else None
    filled = [
        np.full(count, fill, dtype=np.uint8) if part is None else part
        for part, count in zip(parts, counts, strict=True)
    ]
    return filled[0] if len(filled) == 1 else np.concatenate(filled)
