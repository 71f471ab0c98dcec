"""Kernels that find and write the fields of packed rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, load_u32, load_u64, store_u32, store_u64
from lance_duck.kernels.texts.variable import Offsets

NULL_ROW: Final = -1


@kernel
def find_fields(
    data: Bytes,
    offsets: NDArray[np.int64],
    fixed: NDArray[np.int64],
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Find the start and size of each field in each row.

    Args:
        data: Row i is data[offsets[i] : offsets[i + 1]]. The offsets are already checked.
        offsets: (rows + 1,).
        fixed: (fields,), size of each field in bytes, or 0 if the field has a length prefix.
        lengths: (fields,), size of each length prefix in bytes, 4 or 8.
        starts: (fields, rows), output: byte offset of each field, or NULL_ROW for a row without bytes.
        sizes: (fields, rows), output: size of each field in bytes.

    Returns:
        A status.
    """
    for i in range(len(offsets) - 1):
        at: Any = offsets[i]
        end = offsets[i + 1]
        if at == end:
            for f in range(len(fixed)):
                starts[f, i] = NULL_ROW
                sizes[f, i] = 0
            continue
        for f in range(len(fixed)):
            size: Any = fixed[f]
            if size == 0:
                if end - at < lengths[f]:
                    return status.TOO_SHORT | (i << 8)
                size = np.int64(load_u32(data, at)) if lengths[f] == 4 else np.int64(load_u64(data, at))
                at += lengths[f]
            if size < 0 or size > end - at:
                return status.TOO_SHORT | (i << 8)
            starts[f, i] = at
            sizes[f, i] = size
            at += size
        if at != end:
            return status.TRAILING | (i << 8)
    return status.OK


def find_fields_reference(
    data: Bytes,
    offsets: NDArray[np.int64],
    fixed: NDArray[np.int64],
    lengths: NDArray[np.int64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> int:
    """Reference implementation in plain Python."""
    for i, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        starts[:, i], sizes[:, i] = NULL_ROW, 0
        at = begin
        for f in range(len(fixed) if begin < end else 0):
            size, prefix = int(fixed[f]), int(lengths[f]) if not fixed[f] else 0
            head = data[at : min(at + prefix, end)].tobytes()
            size = size or int.from_bytes(head, "little")
            at += prefix
            if len(head) < prefix or at + size > end:
                return status.TOO_SHORT | (i << 8)
            starts[f, i], sizes[f, i] = at, size
            at += size
        if at != end:
            return status.TRAILING | (i << 8)
    return status.OK


@kernel
def place_fixed(data: Bytes, width: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Write a field of `width` bytes to each row i at places[i]. Advances `places` past the field."""
    for i in range(len(places)):
        copy(out, places[i], data, i * width, width)
        places[i] += width


def place_fixed_reference(data: Bytes, width: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Reference implementation in plain Python."""
    for i, place in enumerate(places.tolist()):
        out[place : place + width] = data[i * width : (i + 1) * width]
    places += width


@kernel
def place_variable(data: Bytes, offsets: Offsets, length: int, places: NDArray[np.int64], out: Bytes) -> None:
    """Write a field to each row, with a length prefix of 4 or 8 bytes. Advances `places` past the field."""
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
    """Reference implementation in plain Python."""
    for i, place in enumerate(places.tolist()):
        value = data[offsets[i] : offsets[i + 1]].tobytes()
        row = len(value).to_bytes(length, "little") + value
        out[place : place + len(row)] = np.frombuffer(row, np.uint8)
        places[i] += len(row)
