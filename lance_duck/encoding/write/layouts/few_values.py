"""Miniblock pages of few values: one chunk of plain values, written without inspecting them.

`encoding.layouts.miniblock` describes the bytes. For so few values, a smaller form would hardly save more than the
padding around a page. Choosing it would take longer than all other work of a small append.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, cast

import numpy as np

from lance_duck.encoding.block import Block, FixedWidth, VariableWidth
from lance_duck.encoding.codecs.bitpacking import OutOfLineBitpacking
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.layouts.layers import Layers
from lance_duck.encoding.layouts.levels import LEVEL_BITS
from lance_duck.encoding.layouts.page import EncodingDescription
from lance_duck.encoding.write.costs import FEW_BYTES, FEW_VALUES, ZIPPED_BYTES
from lance_duck.encoding.write.layouts.page import EncodedPage, PageLevels, page_encoding
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.wire.pb import encodings21_pb2 as pb

_DESCRIPTIONS: Final = 1024
_ZEROS: Final = bytes(8)


def encode_few(block: Block, levels: PageLevels, choice: EncodingOptions, first_row: int) -> EncodedPage | None:
    """Return a page with a single chunk.

    Returns None if there are many or large values, or if the field requests an encoding.

    Args:
        block: The value slots, not all of them null.
        levels: Levels of the page.
        choice: Encoding options of the field.
        first_row: First row of the page.
    """
    if levels.count > FEW_VALUES or not choice.is_open:
        return None
    plain = _plain(block)
    if plain is None:
        return None
    codec, values = plain
    large = choice.grammar.has_large_chunks
    sections = [part.astype("<u2").tobytes() for part in (levels.rep, levels.def_) if part is not None]
    head = struct.pack(f"<{1 + len(sections)}H", levels.count if sections else 0, *map(len, sections))
    head += len(values).to_bytes(4 if large else 2, "little")
    chunk = b"".join(part + _ZEROS[: -len(part) % 8] for part in (head, *sections, values))
    buffers = [((len(chunk) // 8 - 1) << 4).to_bytes(4 if large else 2, "little"), chunk]
    if levels.rep is not None:
        buffers.append(struct.pack("<QQ", np.count_nonzero(levels.rep == levels.layers.max_rep), 0))
    has = (levels.rep is not None, levels.def_ is not None)
    encoding = _description(codec, levels.layers, has, levels.num_slots, large)
    return EncodedPage(tuple(np.frombuffer(b, np.uint8) for b in buffers), encoding, levels.num_rows, first_row)


def _plain(block: Block) -> tuple[Flat | Variable, bytes] | None:
    """Return the codec and the bytes of the single chunk. Returns None if the block is too large or not plain."""
    if isinstance(block, FixedWidth) and block.bits:
        size = block.count * block.bits // 8
        if size > FEW_BYTES or block.bits >= 8 * ZIPPED_BYTES:
            return None
        if block.bits == 1:
            return Flat(1), np.packbits(block.data[: block.count], bitorder="little").tobytes()
        return Flat(block.bits), block.data[:size].tobytes()
    if isinstance(block, VariableWidth):
        first, last = int(block.offsets[0]), int(block.offsets[-1])
        if last - first > min(FEW_BYTES, ZIPPED_BYTES * block.count - 1):
            return None
        width = block.offsets.itemsize
        offsets = block.offsets - block.offsets.dtype.type(first - (block.count + 1) * width)
        values = offsets.astype(f"<i{width}").tobytes() + block.data[first:last].tobytes()
        return Variable(8 * width), values + _ZEROS[: -len(values) % width]
    return None


@lru_cache(_DESCRIPTIONS)
def _description(
    codec: Flat | Variable, layers: Layers, has: tuple[bool, bool], num_slots: int, large: bool
) -> EncodingDescription:
    """Return the description of a page. Levels, if the page has any, are stored as whole words."""
    rep, def_ = (
        OutOfLineBitpacking(LEVEL_BITS, max(1, most.bit_length())).to_proto() if is_there else None
        for most, is_there in zip((layers.max_rep, layers.max_def), has, strict=True)
    )
    layout = pb.MiniBlockLayout(
        rep_compression=rep,
        def_compression=def_,
        value_compression=codec.to_proto(),
        layers=[cast("pb.RepDefLayer", kind) for kind in layers.kinds],
        num_buffers=1,
        repetition_index_depth=int(has[0]),
        num_items=num_slots,
        has_large_chunk=large,
    )
    return page_encoding(pb.PageLayout(mini_block_layout=layout))
