"""Repetition and definition levels: u16 numbers on disk, uint8 in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, FixedWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.layouts.page import Levels
from lance_duck.errors import CorruptError
from lance_duck.store.request import Bytes

LEVEL_BITS = 16


def decode_level_chunks(codec: Codec, chunks: Chunks, max_level: int, where: str) -> Levels:
    """Return the concatenated levels of chunks: counts.sum() levels, each at most `max_level`.

    Raises:
        CorruptError: The buffers cannot hold the levels, or a level is too high.
    """
    return _narrow(codec.decode_blocks(chunks), int(chunks.counts.sum()), max_level, where)


def decode_levels(codec: Codec | None, buffer: Bytes, count: int, max_level: int, where: str) -> Levels:
    """Return `count` levels from one buffer, raw if `codec` is None.

    Raises:
        CorruptError: The buffer cannot hold the levels, or a level is too high.
    """
    if codec is not None:
        return _narrow(codec.decode_block(buffer, count), count, max_level, where)
    if len(buffer) != 2 * count:
        raise CorruptError(
            "the buffer of the levels has the wrong size", where=where, expected=f"{2 * count} bytes", found=len(buffer)
        )
    return narrow_levels(np.frombuffer(buffer.tobytes(), dtype="<u2"), max_level, where)


def narrow_levels(levels: NDArray[np.unsignedinteger[Any]], max_level: int, where: str) -> Levels:
    """Return levels as uint8, checked against their maximum.

    Raises:
        CorruptError: A level is too high.
    """
    if len(levels) and int(levels.max()) > max_level:
        raise CorruptError("a level is too high", where=where, expected=f"at most {max_level}", found=int(levels.max()))
    return levels.astype(np.uint8)


def _narrow(block: Block, count: int, max_level: int, where: str) -> Levels:
    if not isinstance(block, FixedWidth) or block.bits != LEVEL_BITS or block.count != count:
        raise CorruptError(
            "the levels have the wrong width or count", where=where, expected=f"{count} numbers of {LEVEL_BITS} bits"
        )
    return narrow_levels(np.ascontiguousarray(block.data).view("<u2"), max_level, where)
