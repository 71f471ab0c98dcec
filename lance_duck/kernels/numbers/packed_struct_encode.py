"""Kernels that write the fields of packed rows next to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, store_u32, store_u64
from lance_duck.kernels.texts.variable import Offsets


@kernel
def place_fixed(data: Bytes, width: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Write a field of `width` bytes to each row, at places[i], and move the places behind it."""
    for i in range(len(places)):
        copy(out, places[i], data, i * width, width)
        places[i] += width


def place_fixed_reference(data: Bytes, width: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Compute the plain reference, in Python."""
    for i, place in enumerate(places.tolist()):
        out[place : place + width] = data[i * width : (i + 1) * width]
    places += width


@kernel
def place_variable(data: Bytes, offsets: Offsets, length: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Write the length, of 4 or 8 bytes, and the bytes of a field to each row, and move the places behind them."""
    for i in range(len(places)):
        begin = np.int64(offsets[i])
        size = np.int64(offsets[i + 1]) - begin
        if length == 4:
            store_u32(out, places[i], np.uint32(size))
        else:
            store_u64(out, places[i], np.uint64(size))
        copy(out, places[i] + length, data, begin, size)
        places[i] += length + size


def place_variable_reference(data: Bytes, offsets: Offsets, length: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Compute the plain reference, in Python."""
    for i, place in enumerate(places.tolist()):
        value = data[offsets[i] : offsets[i + 1]].tobytes()
        row = len(value).to_bytes(length, "little") + value
        out[place : place + len(row)] = np.frombuffer(row, np.uint8)
        places[i] += len(row)
