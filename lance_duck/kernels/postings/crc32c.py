"""Kernel of CRC-32C, eight bytes at a time."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, load_u32

_POLYNOMIAL: Final = 0x82F63B78


def _tables() -> NDArray[np.uint32]:
    """Return the remainder of each byte, by the number of bytes that follow it: (8, 256)."""
    table: NDArray[Any] = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = (table >> 1) ^ np.where(table & 1, np.uint32(_POLYNOMIAL), np.uint32(0))
    tables = [table]
    for _ in range(7):
        tables.append((tables[-1] >> 8) ^ table[tables[-1] & 255])
    return np.stack(tables).astype(np.uint32)


TABLES: Final = _tables()


@kernel
def crc32c(data: Bytes, tables: NDArray[np.uint32]) -> int:
    """Return the CRC-32C of bytes; `tables` is `TABLES`."""
    value = np.uint32(0xFFFFFFFF)
    whole = len(data) & ~7
    for at in range(0, whole, 8):
        low = np.uint32(value ^ load_u32(data, at))
        high = np.uint32(load_u32(data, at + 4))
        value = np.uint32(0)
        for i in range(4):
            value ^= tables[7 - i, (low >> np.uint32(8 * i)) & np.uint32(255)]
            value ^= tables[3 - i, (high >> np.uint32(8 * i)) & np.uint32(255)]
    for at in range(whole, len(data)):
        value = np.uint32((value >> np.uint32(8)) ^ tables[0, (value ^ np.uint32(data[at])) & np.uint32(255)])
    return int(value ^ np.uint32(0xFFFFFFFF))
