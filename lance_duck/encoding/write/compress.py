"""From blocks to compressed buffers: looks at the values, picks an encoding, runs it once."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Bytes, FixedWidth, VariableWidth
from lance_duck.encoding.compressed import ChunkBuffer, MiniBlockValues
from lance_duck.encoding.write.choice import Choice
from lance_duck.errors import UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

MAX_VALUES: Final = 4096
"""Values of a chunk."""
CHUNK_BYTES: Final = 4096


def compress_mini_block(block: Block, choice: Choice, max_values: int = MAX_VALUES) -> MiniBlockValues:
    """Cuts values into chunks, and compresses them.

    Args:
        block: The value slots of a page.
        choice: What the field asks for.
        max_values: Most values of a chunk, a power of two; below 1024 values are not bit-packed.

    Returns:
        Chunks of a few KiB. A block without values gives one chunk without values.

    Raises:
        UnsupportedError: A single value is too large for a chunk.
    """
    if isinstance(block, FixedWidth):
        size = max(1, CHUNK_BYTES * 8 // block.bits)
        counts = _equal_counts(block.count, min(max_values, 1 << (size.bit_length() - 1)))
        data = np.packbits(block.data, bitorder="little") if block.bits == 1 else block.data
        ends = (np.cumsum(counts) * block.bits + 7) // 8
        return MiniBlockValues(_flat(block.bits), counts, ((data, ends),))
    if isinstance(block, VariableWidth):
        counts = _equal_counts(block.count, min(max_values, 32))
        return MiniBlockValues(_variable(block), counts, (_variable_chunks(block, counts),))
    raise UnsupportedError("block of this kind", where="miniblock", found=type(block).__name__)


def compress_values(block: Block, choice: Choice) -> tuple[pb.CompressiveEncoding, Block]:
    """Compresses each value by itself, for full zip.

    Returns:
        The encoding, and FixedWidth or VariableWidth with one value for each of `block`.
    """
    if isinstance(block, FixedWidth):
        return _flat(block.bits), block
    if isinstance(block, VariableWidth):
        return _variable(block), block
    raise UnsupportedError("block of this kind", where="full zip", found=type(block).__name__)


def compress_block(block: Block, choice: Choice) -> tuple[pb.CompressiveEncoding, Bytes]:
    """Compresses values to one buffer, from which they are always read as a whole."""
    if isinstance(block, FixedWidth):
        data = np.packbits(block.data, bitorder="little") if block.bits == 1 else block.data
        return _flat(block.bits), data
    raise UnsupportedError("block of this kind", where="block", found=type(block).__name__)


def compress_levels(
    levels: NDArray[Any], ends: NDArray[np.int64], max_level: int
) -> tuple[pb.CompressiveEncoding, Bytes, NDArray[np.int64]]:
    """Compresses the repetition or definition levels of chunks.

    Args:
        levels: uint8 or uint16.
        ends: int64 (k,), where the levels of each chunk end.
        max_level: Highest level that there may be.

    Returns:
        The encoding, the bytes of all chunks one after the other, and int64 (k,), where each chunk's bytes end.
    """
    return _flat(16), levels.astype("<u2").view(np.uint8), ends * 2


def _equal_counts(count: int, size: int) -> NDArray[np.int64]:
    chunks = max(1, -(-count // size))
    counts = np.full(chunks, size, np.int64)
    counts[-1] = count - size * (chunks - 1)
    return counts


def _flat(bits: int) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(flat=pb.Flat(bits_per_value=bits))


def _variable(block: VariableWidth) -> pb.CompressiveEncoding:
    return pb.CompressiveEncoding(variable=pb.Variable(offsets=_flat(block.offsets.itemsize * 8)))


def _variable_chunks(block: VariableWidth, counts: NDArray[np.int64]) -> ChunkBuffer:
    parts, start = [], 0
    word = block.offsets.dtype
    for count in counts.tolist():
        offsets = block.offsets[start : start + count + 1]
        shifted = (offsets - offsets[0] + (count + 1) * word.itemsize).astype(word)
        parts.append(np.concatenate([shifted.view(np.uint8), block.data[int(offsets[0]) : int(offsets[-1])]]))
        start += count
    return np.concatenate(parts), np.cumsum([len(part) for part in parts])
