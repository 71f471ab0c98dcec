"""Kernel that packs bytes of 0 or 1 into bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u64, store_u8

_SPREAD = np.uint64(0x0102040810204080)
_TOP = np.uint64(56)


@kernel
def gather_bits(data: Bytes, counts: NDArray[np.int64], out: Bytes) -> None:
    """Pack bytes of 0 or 1 into bits, lowest bit first. Each chunk begins at a byte and is zero-padded to full bytes.

    Args:
        data: counts.sum() bytes, each 0 or 1.
        counts: Number of values of each chunk.
        out: ((counts + 7) // 8).sum() bytes, output.
    """
    source = 0
    place = 0
    for i in range(len(counts)):
        end = source + counts[i]
        while source + 8 <= end:
            store_u8(out, place, np.uint8((load_u64(data, source) * _SPREAD) >> _TOP))
            source += 8
            place += 1
        if source < end:
            packed: Any = 0
            for bit in range(end - source):
                packed |= np.int64(data[source + bit]) << bit
            out[place] = packed
            source = end
            place += 1


def gather_bits_reference(data: Bytes, counts: NDArray[np.int64], out: Bytes) -> None:
    """Reference implementation in plain Python."""
    ends = np.cumsum(counts).tolist()
    parts = [np.packbits(data[end - n : end], bitorder="little") for end, n in zip(ends, counts.tolist(), strict=True)]
    out[:] = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
