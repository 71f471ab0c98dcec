"""Repetition and definition levels of chunks, in the smallest form that the file's version has."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codecs.bitpacking import OutOfLineBitpacking
from lance_duck.encoding.codecs.rle import HEAD, Rle
from lance_duck.encoding.layouts.levels import LEVEL_BITS
from lance_duck.encoding.write.costs import WORTH
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.rle_encode import count_runs
from lance_duck.wire.pb import encodings21_pb2 as pb


def compress_levels(
    levels: NDArray[Any], ends: NDArray[np.int64], max_level: int, allowed: frozenset[str]
) -> tuple[pb.CompressiveEncoding, Bytes, NDArray[np.int64]]:
    """Compress the repetition or definition levels of chunks.

    Args:
        levels: uint8 or uint16, each <= max_level.
        ends: int64 (k,), where the levels of each chunk end.
        max_level: Highest possible level.
        allowed: Encodings that levels may have in a file of this version: see `write.grammar`.

    Returns:
        The encoding, the bytes of all chunks one after the other, and int64 (k,), where each chunk's bytes end.
    """
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    words = levels.astype("<u2")
    block = FixedWidth(LEVEL_BITS, words.view(np.uint8), len(words))
    packed = OutOfLineBitpacking(LEVEL_BITS, max(1, max_level.bit_length()))
    if "rle" in allowed and _run_bytes(words, counts) < WORTH * int(packed.sizes(counts).sum()):
        rle = Rle(LEVEL_BITS)
        return rle.to_proto(), *rle.encode_blocks(block, counts)
    ((data, byte_ends),) = packed.encode_chunks(block, counts)
    return packed.to_proto(), data, byte_ends


def _run_bytes(words: NDArray[np.uint16], counts: NDArray[np.int64]) -> int:
    """Return the number of bytes of the levels of all chunks as runs."""
    runs = np.empty(len(counts), np.int64)
    count_runs(readonly(words), counts, runs)
    return len(counts) * HEAD + int(runs.sum()) * 3
