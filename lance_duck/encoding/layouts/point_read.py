"""Point reads: decode single values of a miniblock page directly from mapped memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.types import MAX_INT32
from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codec_checks import WORDS
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.layouts.chunk_decoder import MiniBlockLayout, dictionary_of_indices, plain_width
from lance_duck.encoding.layouts.chunks import ChunkTable, Int64s
from lance_duck.encoding.layouts.levels import LEVEL_BITS, narrow_levels
from lance_duck.encoding.layouts.page import Leaf, Page
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.pages.point_read import find_texts, find_values
from lance_duck.kernels.pages.point_read_packed import unpack_some, unpack_some_fixed
from lance_duck.kernels.status import check_status
from lance_duck.kernels.texts.take import gather_fixed, gather_variable
from lance_duck.store.checked import look

_Pick = Callable[[Bytes, Int64s, Int64s, Int64s, Int64s], Block]
"""Function that reads values from a buffer.

Its arguments are the data, and for each value the position in its chunk, the chunk's value count, and the start and
size of its buffer.
"""


class PointReader:
    """A reader of single values of a page.

    Args:
        page: The page, in a source that is not remote.
        layout: Layout of the page, for which `PointReader.can_read` is true.
        table: Chunks of the page.
        dictionary: Dictionary of the page, or None.
    """

    def __init__(self, page: Page, layout: MiniBlockLayout, table: ChunkTable, dictionary: Block | None) -> None:
        self._source = page.source
        self._extent = page.buffers[1]
        self._chunk_bytes = self._extent[1] // table.num_chunks
        self._layout = layout
        self._dictionary = dictionary
        self._where = page.where
        self._offsets, self._items = readonly(table.offsets), readonly(table.items)
        self._levels = int(layout.shape.has_def)
        self._width = 4 if layout.shape.large else 2
        self._pick = _pick_of(layout.values)
        self._pick_level = None if layout.def_ is None else _pick_of(layout.def_)

    @staticmethod
    def can_read(layout: MiniBlockLayout) -> bool:
        """Return whether the values and levels of a page can be read one by one."""
        if layout.shape.has_rep or layout.shape.num_buffers != 1 or not layout.layers.is_flat:
            return False
        return _pick_of(layout.values) is not None and (layout.def_ is None or _pick_of(layout.def_) is not None)

    def take(self, rows: Int64s) -> Leaf:
        """Return the values at these rows of the page. At least one row is required.

        Raises:
            CorruptError: A chunk that holds a row contradicts itself, or a row is outside the page.
        """
        data = look(self._source, *self._extent, len(rows) * self._chunk_bytes, rows, self._chunks_of)
        places = np.empty((6, len(rows)), np.int64)
        status = find_values(data, self._offsets, self._items, readonly(rows), self._levels, self._width, places)
        check_status(status, "miniblock", "row")
        place, count, start, size, level_start, level_size = places
        def_ = None
        if self._pick_level is not None:
            levels = self._pick_level(data, place, count, level_start, level_size)
            if not isinstance(levels, FixedWidth) or levels.bits != LEVEL_BITS:
                raise CorruptError(
                    "the levels have the wrong width", where=self._where, expected=f"numbers of {LEVEL_BITS} bits"
                )
            def_ = narrow_levels(levels.data.view("<u2"), self._layout.layers.max_def, self._where)
        assert self._pick is not None
        block = self._pick(data, place, count, start, size)
        if self._dictionary is not None:
            block = dictionary_of_indices(block, self._dictionary, self._layout.layers, def_, self._where)
        return Leaf(block, None, def_, self._layout.layers, len(rows), len(rows))

    def _chunks_of(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Return the start and the end of each row's chunk."""
        chunks = self._items[1:-1].searchsorted(rows, side="right")
        return self._offsets[chunks], self._offsets[chunks + 1]


def _pick_of(codec: Codec) -> _Pick | None:
    """Return the function that reads single values of a codec, or None if the codec is not supported."""
    width = plain_width(codec)
    if width:
        return _plain(codec, width)
    if isinstance(codec, InlineBitpacking):
        return _packed(codec)
    if isinstance(codec, OutOfLineBitpacking) and codec.width:
        return _packed_fixed(codec)
    if isinstance(codec, Variable):
        return _texts(codec)
    if isinstance(codec, Fsst) and isinstance(codec.inner, Variable):
        codes = _texts(codec.inner)
        return lambda *where: codec.decode_values(codes(*where))
    return None


def _plain(codec: Codec, width: int) -> _Pick:
    def pick(data: Bytes, place: Int64s, count: Int64s, start: Int64s, size: Int64s) -> Block:
        if (count > size // width).any():
            raise CorruptError("the value count exceeds what the bytes can hold", where="flat encoding")
        out = np.empty(len(place) * width, np.uint8)
        gather_fixed(data, start + place * width, width, out)
        return codec.decode_block(out, len(place))

    return pick


def _packed(codec: InlineBitpacking) -> _Pick:
    word, bits = WORDS[codec.bits], codec.bits

    def pick(data: Bytes, place: Int64s, _: Int64s, start: Int64s, size: Int64s) -> Block:
        out: NDArray[Any] = np.empty(len(place), word)
        check_status(unpack_some(data, place, start, size, out), "inline bitpacking", "row")
        return FixedWidth(bits, out.view(np.uint8), len(place))

    return pick


def _packed_fixed(codec: OutOfLineBitpacking) -> _Pick:
    word, bits, width = WORDS[codec.bits], codec.bits, codec.width

    def pick(data: Bytes, place: Int64s, count: Int64s, start: Int64s, size: Int64s) -> Block:
        out: NDArray[Any] = np.empty(len(place), word)
        check_status(unpack_some_fixed(data, place, count, start, size, width, out), "bitpacking", "row")
        return FixedWidth(bits, out.view(np.uint8), len(place))

    return pick


def _texts(codec: Variable) -> Callable[[Bytes, Int64s, Int64s, Int64s, Int64s], VariableWidth]:
    width = codec.offset_bits // 8

    def pick(data: Bytes, place: Int64s, _: Int64s, start: Int64s, size: Int64s) -> VariableWidth:
        begins, ends = np.empty(len(place), np.int64), np.empty(len(place) + 1, np.int64)
        check_status(find_texts(data, place, start, size, width, begins, ends), "variable", "row")
        total = int(ends[-1])
        offsets: NDArray[Any] = ends.astype(np.int32) if total <= MAX_INT32 else ends
        out = np.empty(total, np.uint8)
        gather_variable(data, begins, offsets, out)
        return VariableWidth(offsets, out)

    return pick
