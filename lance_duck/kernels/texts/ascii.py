"""Kernel that recognizes ASCII."""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u64

_HIGH_BITS = 0x8080808080808080
_STRIDE = 1 << 16


@kernel
def is_ascii(data: Bytes) -> bool:
    """Return whether all bytes are below 128."""
    size = len(data)
    place = 0
    while place + 8 <= size:
        bits: Any = np.uint64(0)
        end = min(place + _STRIDE, size - 7)
        for at in range(place, end, 8):
            bits |= load_u64(data, at)
        if bits & np.uint64(_HIGH_BITS):
            return False
        place += (end - place + 7) // 8 * 8
    last = np.uint8(0)
    for at in range(place, size):
        last |= data[at]
    return bool(last < 128)


def is_ascii_reference(data: Bytes) -> bool:
    """Compute the plain reference, in Python."""
    return data.tobytes().isascii()
