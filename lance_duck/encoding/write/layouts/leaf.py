"""Pages of a physical column: chooses the layout for values and levels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lance_duck.encoding.arrow.take import look_up, slice_block
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.layouts.page import Levels
from lance_duck.encoding.write.codecs.compress import dictionary_if_smaller
from lance_duck.encoding.write.costs import ZIPPED_BYTES
from lance_duck.encoding.write.layouts.constant import constant_value, encode_all_null, encode_constant
from lance_duck.encoding.write.layouts.few_values import encode_few
from lance_duck.encoding.write.layouts.fullzip import encode_full_zip
from lance_duck.encoding.write.layouts.levels import LeafShape, page_levels
from lance_duck.encoding.write.layouts.miniblock import encode_mini_block
from lance_duck.encoding.write.layouts.page import EncodedPage, PageLevels
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.memory import Bytes

_FEW_LEVELS: Final = 0x7FFF


@dataclass(frozen=True, slots=True)
class LeafRows:
    """Rows of a physical column. `encoding.write.shred` describes `begins` and `holes`.

    Attributes:
        block: A value for each slot.
        shape: Layers of the column.
        begins: Beginning of each entry, or None without lists.
        holes: Marks of missing values, or None if all are 0.
        hidden: Highest mark of an entry without a slot.
        num_rows: Number of rows. For fixed-size lists of structs, number of structs.
    """

    block: Block
    shape: LeafShape
    begins: Bytes | None
    holes: Bytes | None
    hidden: int
    num_rows: int


def encode_leaf(rows: LeafRows, first_row: int, choice: EncodingOptions) -> Iterator[EncodedPage]:
    """Yield the pages of rows. Usually one page. Rows are split if a page would have too many levels without values.

    Raises:
        UnsupportedError: Pages cannot hold values of this kind.
    """
    levels = page_levels(rows.shape, rows.begins, rows.holes, rows.block.count, rows.num_rows)
    page = _one_page(rows.block, levels, first_row, choice)
    if page is not None:
        yield page
        return
    cuts = _row_cuts(rows)
    if len(cuts) > 2:
        for part, first in _parts(rows, cuts):
            yield from encode_leaf(part, first_row + first, choice)
        return
    block = look_up(rows.block) if isinstance(rows.block, Dictionary) else rows.block
    yield encode_full_zip(block, levels, choice, first_row)


def _one_page(block: Block, levels: PageLevels, first_row: int, choice: EncodingOptions) -> EncodedPage | None:
    valid = _valid_slots(levels)
    is_null = levels.num_slots == 0 or (valid is not None and not valid.any())
    if is_null and _may_be_constant(block, levels, choice):
        return encode_all_null(levels, choice, first_row)
    if is_null:
        block = _with_item(block)
    elif choice.grammar.has_constants:
        value = constant_value(block, valid)
        if value is not None:
            return encode_constant(value, levels, first_row)
    few = encode_few(block, levels, choice, first_row)
    if few is not None:
        return few
    block = dictionary_if_smaller(block, choice)
    if _is_large(block, choice):
        return encode_full_zip(block, levels, choice, first_row)
    return encode_mini_block(block, levels, choice, first_row)


def _may_be_constant(block: Block, levels: PageLevels, choice: EncodingOptions) -> bool:
    """Return whether an all-null page may be constant. For the type null, no other layout is possible."""
    if levels.rep is None or levels.num_slots == 0 or choice.grammar.has_constant_lists:
        return True
    return isinstance(block, FixedWidth) and block.bits == 0


def _with_item(block: Block) -> Block:
    """Return the block. An empty dictionary gets one item, to which its null slots refer."""
    if not isinstance(block, Dictionary) or block.items.count:
        return block
    if isinstance(block.items, VariableWidth):
        return replace(block, items=VariableWidth(np.zeros(2, block.items.offsets.dtype), block.items.data[:0]))
    assert isinstance(block.items, FixedWidth)
    zero = np.zeros(max(1, block.items.bits // 8), np.uint8)
    return replace(block, items=FixedWidth(block.items.bits, zero, 1))


def _valid_slots(levels: PageLevels) -> Levels | None:
    """Return a flag for each slot, set if it is not null. Returns None if all slots are valid."""
    if levels.def_ is None or not levels.layers.max_visible:
        return None
    visible = levels.def_[levels.def_ <= levels.layers.max_visible] if levels.has_hidden else levels.def_
    return np.equal(visible, 0).view(np.uint8)


def _is_large(block: Block, choice: EncodingOptions) -> bool:
    if isinstance(block, Dictionary):
        return False
    if isinstance(block, PackedStruct):
        return not all(isinstance(field, FixedWidth) for field in block.fields)
    if isinstance(block, FixedWidth) and block.bits == 1 and not choice.grammar.has_zipped_bits:
        return False
    if choice.structural in ("miniblock", "fullzip"):
        return choice.structural == "fullzip"
    return mean_value_bits(block) >= 8 * ZIPPED_BYTES


def mean_value_bits(block: Block) -> int:
    """Return the mean number of bits of a value."""
    match block:
        case FixedWidth(bits):
            return bits
        case VariableWidth(offsets):
            return 8 * int(offsets[-1] - offsets[0]) // max(1, block.count)
        case Dictionary(indices):
            return 8 * indices.itemsize
        case FixedSizeList(dimension, items):
            return dimension * mean_value_bits(items)
        case PackedStruct(fields):
            return sum(mean_value_bits(field) for field in fields)


def _row_cuts(rows: LeafRows) -> list[int]:
    """Return the bounds of slices with few levels each. Slices begin at rows. A longer row is a single slice."""
    if rows.begins is None:
        return [0, rows.block.count]
    heads = np.append(np.flatnonzero(rows.begins == 0), len(rows.begins))
    cuts = [0]
    while cuts[-1] < len(rows.begins):
        fit = int(heads.searchsorted(cuts[-1] + _FEW_LEVELS, side="right")) - 1
        after = int(heads.searchsorted(cuts[-1], side="right"))
        cuts.append(int(heads[max(fit, after)]))
    return cuts


def _parts(rows: LeafRows, cuts: list[int]) -> Iterator[tuple[LeafRows, int]]:
    """Yield the rows of each slice, and the number of rows before it."""
    assert rows.begins is not None
    slot = first = 0
    for start, stop in itertools.pairwise(cuts):
        begins = rows.begins[start:stop]
        holes = None if rows.holes is None else rows.holes[start:stop]
        slots = stop - start
        if holes is not None:
            slots -= int(np.count_nonzero((holes > 0) & (holes <= rows.hidden)))
        count = int(np.count_nonzero(begins == 0))
        block = slice_block(rows.block, slot, slot + slots)
        yield replace(rows, block=block, begins=begins, holes=holes, num_rows=count), first
        slot, first = slot + slots, first + count
