"""Repetition and definition levels of chunks, in the smallest of their forms."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.bitpacking import OutOfLineBitpacking
from lance_duck.encoding.block import Bytes, FixedWidth
from lance_duck.encoding.kernels.jit import readonly
from lance_duck.encoding.kernels.rle_out import count_runs
from lance_duck.encoding.levels import LEVEL_BITS
from lance_duck.encoding.rle import HEAD, Rle
from lance_duck.wire.pb import encodings21_pb2 as pb

RUNS_WORTH: Final = 0.9
"""Part of the size of packed levels that runs may have: packed ones are read faster."""


def compress_levels(
    levels: NDArray[Any], ends: NDArray[np.int64], max_level: int
) -> tuple[pb.CompressiveEncoding, Bytes, NDArray[np.int64]]:
    """Compresses the repetition or definition levels of chunks.

    Args:
        levels: uint8 or uint16, each <= max_level.
        ends: int64 (k,), where the levels of each chunk end.
        max_level: Highest level that there may be.

    Returns:
        The encoding, the bytes of all chunks one after the other, and int64 (k,), where each chunk's bytes end.
    """
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    words = levels.astype("<u2")
    block = FixedWidth(LEVEL_BITS, words.view(np.uint8), len(words))
    packed = OutOfLineBitpacking(LEVEL_BITS, max(1, max_level.bit_length()))
    runs = np.empty(len(counts), np.int64)
    count_runs(readonly(words), counts, runs)
    in_runs = len(counts) * HEAD + int(runs.sum()) * 3
    if in_runs < RUNS_WORTH * int(packed.sizes(counts).sum()):
        rle = Rle(LEVEL_BITS)
        return rle.to_proto(), *rle.encode_blocks(block, counts)
    ((data, byte_ends),) = packed.encode_chunks(block, counts)
    return packed.to_proto(), data, byte_ends
