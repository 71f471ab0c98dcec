"""Constant layout: a page whose valid values are all equal, or whose values are all null.

    page buffers | content
    none         | all values are null, or all are the inline value
    2            | repetition levels, definition levels; either may be empty
    1 or 3       | scalar, then the levels as above

Levels are raw u16 numbers unless the layout declares their encoding. A scalar is little-endian:

    size         | field
    4            | number of buffers n
    4 x n        | size of each buffer
    any          | the buffers: the value; or two offsets of 4 or 8 bytes and the bytes between them
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.levels import decode_levels
from lance_duck.encoding.layouts.page import Leaf, Levels, Page, Rows
from lance_duck.encoding.layouts.page_rows import check_rows, expand_ranges, slice_bounds
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import Bytes, Request, run

_SCALAR_BUFFERS = (1, 2)
_MAX_LEVELS = 1 << 40


@dataclass(frozen=True, slots=True)
class ConstantLayout:
    """Description of a constant page.

    Attributes:
        layers: Meaning of the levels.
        inline_value: Little-endian bytes of a fixed-width value, or None.
        rep: Codec of the repetition levels, or None if they are raw.
        def_: Codec of the definition levels, or None if they are raw.
        num_rep: Number of repetition levels, if they have a codec.
        num_def: Number of definition levels, if they have a codec.
    """

    layers: Layers
    inline_value: bytes | None
    rep: Codec | None
    def_: Codec | None
    num_rep: int
    num_def: int


@dataclass(frozen=True, slots=True)
class _ConstantState:
    """The parts of a page that are read once: value and levels.

    Attributes:
        value: The value, or None if all values are null.
        heads: Position of the first entry of each row, followed by the total number of entries. None without lists.
    """

    value: Block | None
    rep: Levels | None
    def_: Levels | None
    heads: NDArray[np.int64] | None


class ConstantReader:
    """A reader of a constant page."""

    def __init__(self, page: Page, layout: ConstantLayout) -> None:
        if len(page.buffers) > 3:
            raise CorruptError(
                "the page has too many buffers", where=page.where, expected="at most 3", found=len(page.buffers)
            )
        self._page = page
        self._layout = layout
        self._state: _ConstantState | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in the page."""
        return self._page.num_rows

    @property
    def is_dictionary(self) -> bool:
        """Always True: all rows refer to one value."""
        return True

    @property
    def is_prepared(self) -> bool:
        """Always True: all bytes can be read in one round."""
        return True

    @property
    def has_levels(self) -> bool:
        """Whether the layers of the page have definition levels."""
        return self._layout.layers.max_def > 0

    @property
    def has_item_validity(self) -> bool:
        """Whether the page has a value, whose items may be null. Without a value, all slots are null."""
        return self._layout.inline_value is not None or len(self._page.buffers) % 2 == 1

    def read_points(self, rows: NDArray[np.int64]) -> Leaf | None:
        """Read rows like `read`. Only the first call reads from the file."""
        return run(self.read(rows))

    def read(self, rows: Rows) -> Request[Leaf]:
        """Read rows. Only the first call reads from the file."""
        count = check_rows(rows, self.num_rows)
        state = self._state
        if state is None:
            state = yield from self._load()
        layers = self._layout.layers
        if state.heads is None:
            def_ = None if state.def_ is None else state.def_[rows]
            return Leaf(_repeat(state.value, count), None, def_, layers, count, count)
        assert state.rep is not None
        if isinstance(rows, slice):
            start, stop = slice_bounds(rows)
            entries: slice | NDArray[np.int64] = slice(int(state.heads[start]), int(state.heads[stop]))
        else:
            entries = expand_ranges(state.heads[rows], state.heads[rows + 1])
        rep = state.rep[entries]
        def_ = None if state.def_ is None else state.def_[entries]
        slots = len(rep) if def_ is None else int(np.count_nonzero(def_ <= layers.max_visible))
        return Leaf(_repeat(state.value, slots), rep, def_, layers, slots, count)

    def _load(self) -> Request[_ConstantState]:
        page, layout = self._page, self._layout
        pieces = yield [page.byte_range(i) for i in range(len(page.buffers))]
        scalar = pieces.pop(0) if len(pieces) % 2 else None
        rep = def_ = heads = None
        if pieces:
            rep, def_ = self._levels(pieces[0], pieces[1])
        if layout.layers.max_rep:
            if rep is None:
                raise CorruptError("the page of a list column does not have repetition levels", where=page.where)
            heads = np.append(np.flatnonzero(rep == layout.layers.max_rep), len(rep))
            if len(heads) != page.num_rows + 1 or (len(rep) and rep[0] != layout.layers.max_rep):
                raise CorruptError(
                    "the row count is wrong", where=page.where, expected=page.num_rows, found=len(heads) - 1
                )
        if def_ is not None and len(def_) != (page.num_rows if rep is None else len(rep)):
            raise CorruptError("the number of definition levels is wrong", where=page.where, found=len(def_))
        self._state = _ConstantState(self._value(scalar), rep, def_, heads)
        return self._state

    def _levels(self, rep: Bytes, def_: Bytes) -> tuple[Levels | None, Levels | None]:
        layout, where = self._layout, self._page.where
        num_rep = layout.num_rep if layout.rep else len(rep) // 2
        num_def = layout.num_def if layout.def_ else len(def_) // 2
        if max(num_rep, num_def) > _MAX_LEVELS:
            raise CorruptError(
                "the page has too many levels",
                where=where,
                expected=f"at most {_MAX_LEVELS}",
                found=max(num_rep, num_def),
            )
        return (
            decode_levels(layout.rep, rep, num_rep, layout.layers.max_rep, where) if len(rep) else None,
            decode_levels(layout.def_, def_, num_def, layout.layers.max_def, where) if len(def_) else None,
        )

    def _value(self, scalar: Bytes | None) -> Block | None:
        if self._layout.inline_value is not None:
            data = np.frombuffer(self._layout.inline_value, dtype=np.uint8)
            return FixedWidth(8 * len(data), data, 1)
        return None if scalar is None else parse_scalar(scalar, self._page.where)


def parse_scalar(data: Bytes, where: str) -> Block:
    """Return one value from the scalar buffer of a constant page.

    Raises:
        CorruptError: Sizes do not add up.
        UnsupportedError: The value has more than two buffers.
    """
    words = data[: len(data) // 4 * 4].view("<u4") if data.flags.c_contiguous else np.empty(0, dtype="<u4")
    count = int(words[0]) if len(words) else 0
    if len(words) and count not in _SCALAR_BUFFERS:
        raise UnsupportedError(
            "the constant value has an unsupported number of buffers", where=where, expected="1 or 2", found=count
        )
    sizes = words[1 : 1 + count].tolist()
    if len(sizes) != count or count == 0 or 4 * (1 + count) + sum(sizes) != len(data):
        raise CorruptError("the buffers of the constant value do not fill it", where=where, found=f"{len(data)} bytes")
    at = 4 * (1 + count)
    if count == 1:
        return FixedWidth(8 * sizes[0], data[at:], 1)
    if sizes[0] not in (8, 16):
        raise CorruptError(
            "the offsets of a constant value have the wrong size", where=where, expected="8 or 16 bytes", found=sizes[0]
        )
    offsets = np.frombuffer(data[at : at + sizes[0]].tobytes(), dtype=f"<i{sizes[0] // 2}")
    if not 0 <= offsets[0] <= offsets[1] <= sizes[1]:
        raise CorruptError(
            "the offsets of a constant value are invalid",
            where=where,
            expected=f"ascending offsets, at most {sizes[1]}",
            found=offsets.tolist(),
        )
    return VariableWidth(offsets, data[at + sizes[0] :])


def _repeat(value: Block | None, count: int) -> Block | None:
    return None if value is None else Dictionary(np.zeros(count, dtype=np.uint32), value)
