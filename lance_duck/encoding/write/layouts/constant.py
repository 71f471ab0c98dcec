"""Constant pages: all null, or one value for all rows. `encoding.layouts.constant` describes the bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np

from lance_duck.encoding.arrow.take import slice_block
from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.layouts.page import Levels
from lance_duck.encoding.write.codecs.compress import compress_levels
from lance_duck.encoding.write.layouts.page import EncodedPage, PageLevels, page_encoding
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings21_pb2 as pb

MAX_INLINE: Final = 32
"""Maximum size of a value in the description, in bytes. Larger values get a buffer."""
_NO_LEVELS = np.empty(0, dtype=np.uint8)
_PROBES = 16


def encode_all_null(levels: PageLevels, choice: EncodingOptions, first_row: int) -> EncodedPage:
    """Return a page whose values are all null."""
    layout = pb.ConstantLayout(layers=levels.kinds)
    if levels.layers.is_flat:
        buffers: tuple[Bytes, ...] = ()
    elif allowed := choice.grammar.constant_levels:
        buffers = _compressed(levels, layout, allowed)
    else:
        buffers = (_raw(levels.rep), _raw(levels.def_))
    return EncodedPage(buffers, page_encoding(pb.PageLayout(constant_layout=layout)), levels.num_rows, first_row)


def encode_constant(value: Block, levels: PageLevels, first_row: int) -> EncodedPage:
    """Return a page whose valid values all equal `value`, of fixed or variable width (2.2)."""
    layout = pb.ConstantLayout(layers=levels.kinds)
    buffers: list[Bytes] = []
    if isinstance(value, FixedWidth) and len(value.data) <= MAX_INLINE:
        layout.inline_value = value.data.tobytes()
    else:
        buffers.append(_scalar(value))
    if levels.rep is not None or levels.def_ is not None:
        buffers += [_raw(levels.rep), _raw(levels.def_)]
    return EncodedPage(tuple(buffers), page_encoding(pb.PageLayout(constant_layout=layout)), levels.num_rows, first_row)


def constant_value(block: Block, valid: Levels | None) -> Block | None:
    """Return the common value of all valid slots.

    Returns None if values differ, or values of this kind cannot be constant.

    Args:
        block: The slots.
        valid: A flag for each slot, set if it is not null. At least one flag must be set. None if all slots are valid.
    """
    if isinstance(block, FixedWidth):
        return _fixed_constant(block, valid) if block.bits else FixedWidth(0, block.data, 1)
    if isinstance(block, VariableWidth):
        return _variable_constant(block, valid)
    return None


@lru_cache
def _probes(count: int) -> tuple[int, ...]:
    """Return a few positions to compare, including the first and the last."""
    return tuple(sorted({i * (count - 1) // (_PROBES - 1) for i in range(_PROBES)}))


def _fixed_constant(block: FixedWidth, valid: Levels | None) -> FixedWidth | None:
    width = max(1, block.bits // 8)
    rows = np.ascontiguousarray(block.data[: block.count * width]).view(f"V{width}")
    first = 0 if valid is None else int(valid.argmax())
    value = rows[first].tobytes()
    for place in _probes(block.count):
        if (valid is None or valid[place]) and rows[place].tobytes() != value:
            return None
    visible = rows if valid is None else rows[valid.view(np.bool_)]
    data = visible.view(np.uint8)
    if not np.array_equal(data[width:], data[:-width]):
        return None
    return FixedWidth(max(8, block.bits), np.frombuffer(value, dtype=np.uint8), 1)


def _variable_constant(block: VariableWidth, valid: Levels | None) -> VariableWidth | None:
    first = 0 if valid is None else int(valid.argmax())
    one = slice_block(block, first, first + 1)
    assert isinstance(one, VariableWidth)
    start, stop = int(one.offsets[0]), int(one.offsets[1])
    value, size = block.data[start:stop], stop - start
    for place in _probes(block.count):
        if valid is None or valid[place]:
            other = block.data[int(block.offsets[place]) : int(block.offsets[place + 1])]
            if not np.array_equal(value, other):
                return None
    sizes = np.diff(block.offsets)
    if np.any((sizes if valid is None else sizes[valid.view(np.bool_)]) != size):
        return None
    data = block.data[int(block.offsets[0]) : int(block.offsets[-1])]
    if size and (len(data) % size or not np.array_equal(data[size:], data[:-size])):
        return None
    return VariableWidth((one.offsets - one.offsets[0]).astype(one.offsets.dtype), value)


def _scalar(value: Block) -> Bytes:
    if isinstance(value, FixedWidth):
        parts = [value.data]
    else:
        assert isinstance(value, VariableWidth)
        parts = [value.offsets.view(np.uint8), value.data]
    head = np.array([len(parts), *(len(part) for part in parts)], dtype="<u4").view(np.uint8)
    return np.concatenate([head, *parts])


def _raw(levels: Levels | None) -> Bytes:
    return _NO_LEVELS if levels is None else levels.astype("<u2").view(np.uint8)


def _compressed(levels: PageLevels, layout: pb.ConstantLayout, allowed: frozenset[str]) -> tuple[Bytes, Bytes]:
    buffers = [_NO_LEVELS, _NO_LEVELS]
    ends = np.array([levels.count])
    if levels.rep is not None:
        encoding, buffers[0], _ = compress_levels(levels.rep, ends, levels.layers.max_rep, allowed)
        layout.rep_compression.CopyFrom(encoding)
        layout.num_rep_values = levels.count
    if levels.def_ is not None:
        encoding, buffers[1], _ = compress_levels(levels.def_, ends, levels.layers.max_def, allowed)
        layout.def_compression.CopyFrom(encoding)
        layout.num_def_values = levels.count
    return buffers[0], buffers[1]
